package settings_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// What a user meets in one primitive is the same in the others: this compares them. It
// stands here because the rules for their values do, and no primitive may know another.

// settings are the structs that a user fills.
var settings = []reflect.Type{
	reflect.TypeFor[semaphore.Config](),
	reflect.TypeFor[semaphore.AcquireOptions](),
	reflect.TypeFor[semaphore.ResizeOptions](),
	reflect.TypeFor[qlock.Config](),
	reflect.TypeFor[qlock.LockOptions](),
	reflect.TypeFor[node.Config](),
	reflect.TypeFor[node.SwarmConfig](),
	reflect.TypeFor[allocator.Config[string]](),
	reflect.TypeFor[allocator.AllocateOptions](),
	reflect.TypeFor[allocator.AddOptions](),
	reflect.TypeFor[allocator.BindOptions](),
	reflect.TypeFor[leader.Config](),
}

func TestEqualFieldNamesHaveEqualTypes(t *testing.T) {
	types := map[string]reflect.Type{}
	for _, settings := range settings {
		for field := range settings.Fields() {
			if field.Name == "Defaults" {
				continue // the primitive's own options
			}
			known, ok := types[field.Name]
			if !ok {
				types[field.Name] = field.Type
				continue
			}
			require.Equal(t, known, field.Type, "%s.%s", settings, field.Name)
		}
	}
}

func TestWhatAClaimIsConfiguredWithAllAre(t *testing.T) {
	shared := []string{"Priority", "Lease", "MaxHold", "WantAfter", "Meta", "Attrs"}
	require.Subset(t, fieldNames(reflect.TypeFor[once.Config]()), shared)
	require.Subset(t, fieldNames(reflect.TypeFor[leader.Config]()), shared)

	shared = append(shared, "NoRenew", "MaxWait")
	require.Subset(t, fieldNames(reflect.TypeFor[semaphore.AcquireOptions]()), shared)
	require.Subset(t, fieldNames(reflect.TypeFor[qlock.LockOptions]()), shared)
	require.Subset(t, fieldNames(reflect.TypeFor[allocator.AllocateOptions]()), shared)
}

func TestHandlesShareWhatIsNotTheirOwn(t *testing.T) {
	permit := methods(reflect.TypeFor[*semaphore.Permit]())
	require.Contains(t, permit, "Release")
	delete(permit, "Weight") // a permit's own
	for _, handle := range []reflect.Type{
		reflect.TypeFor[*qlock.Lock](),
		reflect.TypeFor[*allocator.Allocation[string]](),
	} {
		other := methods(handle)
		for name, signature := range permit {
			require.Equal(t, signature, other[name], "%s.%s", handle, name)
		}
	}
	set := methods(reflect.TypeFor[*qlock.LockSet]())
	for name, signature := range set {
		if want, ok := methods(reflect.TypeFor[*qlock.Lock]())[name]; ok {
			require.Equal(t, want, signature, name)
		}
	}
}

func TestFacesShareWhatIsNotTheirOwn(t *testing.T) {
	election := methods(reflect.TypeFor[*leader.Election]())
	for _, face := range []reflect.Type{
		reflect.TypeFor[*semaphore.Semaphore](), reflect.TypeFor[*allocator.Pool[string]](), reflect.TypeFor[*once.Job](),
	} {
		for _, name := range []string{"Name", "Fence", "Wanted", "Close"} {
			if signature, ok := methods(face)[name]; ok {
				require.Equal(t, signature, election[name], "%s.%s", face, name) // which has them all
			}
		}
	}
}

func TestEverySettingEndsWithItsDefault(t *testing.T) {
	names := map[string]bool{}
	for _, settings := range settings {
		names[strings.TrimSuffix(settings.Name(), "[string]")] = true
	}
	checked := 0
	for _, dir := range []string{"../../pkg/node", "../../pkg/semaphore", "../../pkg/qlock", "../../pkg/allocator", "../../pkg/leader"} {
		for _, file := range parse(t, dir) {
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok || !names[spec.Name.Name] {
					return true
				}
				of, ok := spec.Type.(*ast.StructType)
				if !ok {
					return true // another name of a struct that is looked at
				}
				for _, field := range of.Fields.List {
					text := strings.Join(strings.Fields(field.Doc.Text()), " ")
					at := strings.LastIndex(text, "Default")
					require.GreaterOrEqual(t, at, 0, "%s.%s.%s", dir, spec.Name, field.Names[0])
					// One sentence: a dot followed by more would start another.
					require.NotContains(t, text[at:], ". ", "%s.%s.%s", dir, spec.Name, field.Names[0])
					checked++
				}
				return true
			})
		}
	}
	require.Greater(t, checked, len(settings))
}

// parse returns the files of a folder.
func parse(t *testing.T, dir string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	var files []*ast.File
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	return files
}

// fieldNames returns the names of a struct's fields.
func fieldNames(of reflect.Type) []string {
	var names []string
	for field := range of.Fields() {
		names = append(names, field.Name)
	}
	return names
}

// methods returns the signatures of a type's methods, without the receiver.
func methods(of reflect.Type) map[string]string {
	signatures := map[string]string{}
	for i := range of.NumMethod() {
		method := of.Method(i)
		_, rest, _ := strings.Cut(method.Type.String(), of.String())
		signatures[method.Name] = strings.TrimPrefix(rest, ", ")
	}
	return signatures
}

// Go's documentation shows a file whole if it has one Example and declares something
// else: then a reader sees all that the example needs.
func TestEachExampleIsAWholeFile(t *testing.T) {
	paths, err := filepath.Glob("../../pkg/*/example*_test.go")
	require.NoError(t, err)
	checked := 0
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		known := map[string]bool{}
		for _, spec := range file.Imports {
			name := strings.TrimSuffix(strings.Trim(spec.Path.Value, `"`), "/v2")
			known[name[strings.LastIndex(name, "/")+1:]] = true
			if spec.Name != nil {
				known[spec.Name.Name] = true
			}
		}
		examples, others := 0, 0
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.GenDecl:
				if decl.Tok != token.IMPORT {
					others++
				}
			case *ast.FuncDecl:
				if strings.HasPrefix(decl.Name.Name, "Example") {
					examples++
				} else {
					others++
				}
			}
		}
		if examples == 0 {
			continue // its name only begins like that
		}
		checked++
		require.Equal(t, 1, examples, "examples in %s", path)
		require.Positive(t, others, "other declarations in %s", path)
		for _, used := range file.Unresolved {
			if types.Universe.Lookup(used.Name) == nil {
				require.True(t, known[used.Name], "%s is from another file than %s", used.Name, path)
			}
		}
	}
	require.Positive(t, checked)
}
