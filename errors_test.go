package berth_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/once"
)

// sentinels are all that an error of Berth may match, as docs/errors.md names
// them. A test compares them with the code.
var sentinels = map[string]error{
	"ErrNotAcquired":              berth.ErrNotAcquired,
	"ErrBusy":                     berth.ErrBusy,
	"ErrNotHeld":                  berth.ErrNotHeld,
	"ErrLost":                     berth.ErrLost,
	"ErrExpired":                  berth.ErrExpired,
	"ErrReleased":                 berth.ErrReleased,
	"ErrDeadlock":                 berth.ErrDeadlock,
	"ErrTooManyEntries":           berth.ErrTooManyEntries,
	"ErrNotRunning":               berth.ErrNotRunning,
	"ErrClosed":                   berth.ErrClosed,
	"ErrDraining":                 berth.ErrDraining,
	"ErrUnavailable":              berth.ErrUnavailable,
	"ErrInvalidConfig":            berth.ErrInvalidConfig,
	"ErrIncompatible":             berth.ErrIncompatible,
	"ErrAbsent":                   berth.ErrAbsent,
	"ErrOvertaken":                berth.ErrOvertaken,
	"fence.ErrStale":              fence.ErrStale,
	"inspect.ErrDrainsUnreadable": inspect.ErrDrainsUnreadable,
	"once.ErrUsedUp":              once.ErrUsedUp,
	"once.ErrLate":                once.ErrLate,
	"leader.ErrWanted":            leader.ErrWanted,
	"context.Canceled":            context.Canceled,
	"context.DeadlineExceeded":    context.DeadlineExceeded,
}

// status is a row of the table.
type status struct {
	errors  []string
	reasons []string
	http    int
	grpc    string
}

// grpcCodes are those of gRPC that an error may have.
var grpcCodes = []string{
	"CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
	"RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
	"DATA_LOSS", "UNAUTHENTICATED",
}

var quoted = regexp.MustCompile("`([^`]+)`")

// statuses reads the table.
func statuses(t *testing.T) (rows []status) {
	t.Helper()
	raw, err := os.ReadFile("docs/errors.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(raw), "<!-- begin statuses -->\n")
	require.True(t, found)
	table, _, found := strings.Cut(rest, "<!-- end statuses -->")
	require.True(t, found)
	lines := strings.Split(strings.TrimSpace(table), "\n")
	for _, line := range lines[2:] {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		require.Len(t, cells, 5, line)
		var row status
		for _, match := range quoted.FindAllStringSubmatch(cells[0], -1) {
			row.errors = append(row.errors, match[1])
		}
		if reasons := strings.TrimSpace(cells[1]); reasons != "" {
			row.reasons = strings.Split(reasons, ", ")
		}
		row.http, err = strconv.Atoi(strings.TrimSpace(cells[3]))
		require.NoError(t, err, line)
		row.grpc = strings.TrimSpace(cells[4])
		rows = append(rows, row)
	}
	return rows
}

// exported returns the names of exported Err variables of a package that are made
// there, and the texts of its constants of type Reason.
func exported(t *testing.T, dir string) (names, reasons []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, decl := range parsed.Decls {
			block, ok := decl.(*ast.GenDecl)
			if !ok || block.Tok != token.VAR && block.Tok != token.CONST {
				continue
			}
			for _, spec := range block.Specs {
				values := spec.(*ast.ValueSpec)
				name := values.Names[0].Name
				if kind, ok := values.Type.(*ast.Ident); ok && kind.Name == "Reason" && dir == "." {
					text, err := strconv.Unquote(values.Values[0].(*ast.BasicLit).Value)
					require.NoError(t, err)
					reasons = append(reasons, text)
				}
				if !strings.HasPrefix(name, "Err") || len(values.Values) == 0 {
					continue
				}
				if dir != "." {
					name = filepath.Base(dir) + "." + name
				}
				names = append(names, name)
			}
		}
	}
	return names, reasons
}

func TestEveryErrorAndReasonHasItsStatusInTheDocs(t *testing.T) {
	dirs, err := filepath.Glob("pkg/*")
	require.NoError(t, err)
	names, reasons := exported(t, ".")
	for _, dir := range dirs {
		more, _ := exported(t, dir)
		names = append(names, more...)
	}
	names = append(names, "context.Canceled", "context.DeadlineExceeded")
	require.Greater(t, len(reasons), 10)

	var named, listed []string
	for _, row := range statuses(t) {
		require.NotEmpty(t, row.errors)
		named, listed = append(named, row.errors...), append(listed, row.reasons...)
		require.Contains(t, grpcCodes, row.grpc)
		require.True(t, http.StatusText(row.http) != "" || row.http == 499, "%d is no status", row.http)
	}
	require.ElementsMatch(t, names, named, "each sentinel of each public package, once")
	require.ElementsMatch(t, reasons, listed, "each reason, once")
	known := make([]string, 0, len(sentinels))
	for name := range sentinels {
		known = append(known, name)
	}
	require.ElementsMatch(t, names, known)
}

// The first row counts of which an error matches something, so the order is right
// only if each error finds its own row, alone and as a reason's usual cause.
func TestEveryErrorFindsItsStatusFirst(t *testing.T) {
	rows := statuses(t)
	find := func(err error) int {
		return slices.IndexFunc(rows, func(row status) bool {
			return slices.ContainsFunc(row.errors, func(name string) bool { return errors.Is(err, sentinels[name]) })
		})
	}
	causes := map[berth.Reason]error{
		berth.ReasonTooHeavy:       berth.ErrInvalidConfig,
		berth.ReasonCapacity:       berth.ErrInvalidConfig,
		berth.ReasonDiffers:        berth.ErrInvalidConfig,
		berth.ReasonLimited:        berth.ErrInvalidConfig,
		berth.ReasonAbsent:         berth.ErrAbsent,
		berth.ReasonCancelled:      context.Canceled,
		berth.ReasonTimedOut:       context.DeadlineExceeded,
		berth.ReasonDeadlock:       berth.ErrDeadlock,
		berth.ReasonTooManyEntries: berth.ErrTooManyEntries,
		berth.ReasonClosed:         berth.ErrClosed,
		berth.ReasonDraining:       berth.ErrDraining,
		berth.ReasonFailed:         errors.Join(context.DeadlineExceeded, berth.ErrUnavailable),
	}
	for i, row := range rows {
		for _, name := range row.errors {
			require.Equal(t, i, find(sentinels[name]), name)
		}
		for _, reason := range row.reasons {
			err := &berth.AcquireError{Reason: berth.Reason(reason), Cause: causes[berth.Reason(reason)]}
			require.Equal(t, i, find(err), reason)
		}
	}
	lost := errors.Join(berth.ErrLost, berth.ErrUnavailable)
	require.Equal(t, find(berth.ErrLost), find(lost), "a hold that was lost because nobody answered")
}
