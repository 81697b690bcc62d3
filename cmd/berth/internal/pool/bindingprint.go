package pool

import (
	"fmt"
	"time"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/pkg/allocator"
)

// defaultBindFor is how long a binding lasts that says nothing else, as in package allocator.
const defaultBindFor = time.Hour

// The JSON documents of bindings, by the rules of those of pools.
type (
	bindingDocument struct {
		Binding        string `json:"binding"`
		BindingBase64  []byte `json:"bindingBase64,omitempty"` // only of a name that is not UTF-8
		Resource       string `json:"resource"`
		ResourceBase64 []byte `json:"base64,omitempty"` // only of a key that is not UTF-8
		LeftMs         *int64 `json:"leftMs"`
	}
	bindingsDocument struct {
		Namespace string            `json:"namespace"`
		Name      string            `json:"name"`
		Bindings  []bindingDocument `json:"bindings"`
	}
	boundDocument struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		bindingDocument
	}
	unboundDocument struct {
		boundDocument      // as it was; without a resource if it was not there
		Removed       bool `json:"removed"`
	}
)

func bindingDocumentOf(b allocator.Binding) bindingDocument {
	return bindingDocument{b.Name, app.Base64Of(b.Name), b.Resource, app.Base64Of(b.Resource), app.Millis(b.Left)}
}

// bindingDocuments is never nil, so that JSON has a list.
func bindingDocuments(bindings []allocator.Binding, most int) []bindingDocument {
	bindings, _ = app.First(bindings, most)
	documents := make([]bindingDocument, len(bindings))
	for i, b := range bindings {
		documents[i] = bindingDocumentOf(b)
	}
	return documents
}

// printBoundOf lists the bindings of a pool.
func printBoundOf(a *app.App, name string, bindings []allocator.Binding, most int) error {
	if a.JSON {
		return app.PrintJSON(a.Out, bindingsDocument{a.Namespace, name, bindingDocuments(bindings, most)})
	}
	return printBindings(a, name, bindings, most)
}

func printBindings(a *app.App, name string, bindings []allocator.Binding, most int) error {
	if len(bindings) == 0 {
		_, err := fmt.Fprintf(a.Out, "Nothing is bound in pool %s in namespace %s.\n", app.Plain(name), app.Plain(a.Namespace))
		return err
	}
	rows := make([][]string, len(bindings))
	for i, b := range bindings {
		rows[i] = []string{app.Key(b.Name), app.Key(b.Resource), app.Human(b.Left)}
	}
	return app.Limited(a.Out, []string{"BINDING", "RESOURCE", "LEFT"}, rows, most)
}

func printBound(a *app.App, name string, b allocator.Binding) error {
	if a.JSON {
		return app.PrintJSON(a.Out, boundDocument{a.Namespace, name, bindingDocumentOf(b)})
	}
	_, err := fmt.Fprintf(a.Out, "%s: %s is bound to %s, %s left\n", app.Plain(name), app.Key(b.Name), app.Key(b.Resource), app.Human(b.Left))
	return err
}

func printUnbound(a *app.App, name string, was allocator.Binding) error {
	removed := was.Resource != ""
	if a.JSON {
		return app.PrintJSON(a.Out, unboundDocument{boundDocument{a.Namespace, name, bindingDocumentOf(was)}, removed})
	}
	text := "was not bound"
	if removed {
		text = "is bound to " + app.Key(was.Resource) + " no more"
	}
	_, err := fmt.Fprintf(a.Out, "%s: %s %s\n", app.Plain(name), app.Key(was.Name), text)
	return err
}
