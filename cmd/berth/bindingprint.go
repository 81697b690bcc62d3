package main

import (
	"fmt"
	"time"

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
	return bindingDocument{b.Name, base64Of(b.Name), b.Resource, base64Of(b.Resource), millis(b.Left)}
}

// bindingDocuments is never nil, so that JSON has a list.
func bindingDocuments(bindings []allocator.Binding, most int) []bindingDocument {
	bindings, _ = first(bindings, most)
	documents := make([]bindingDocument, len(bindings))
	for i, b := range bindings {
		documents[i] = bindingDocumentOf(b)
	}
	return documents
}

// printBoundOf lists the bindings of a pool.
func (a *app) printBoundOf(name string, bindings []allocator.Binding, most int) error {
	if a.json {
		return printJSON(a.out, bindingsDocument{a.namespace, name, bindingDocuments(bindings, most)})
	}
	return a.printBindings(name, bindings, most)
}

func (a *app) printBindings(name string, bindings []allocator.Binding, most int) error {
	if len(bindings) == 0 {
		_, err := fmt.Fprintf(a.out, "Nothing is bound in pool %s in namespace %s.\n", plain(name), plain(a.namespace))
		return err
	}
	rows := make([][]string, len(bindings))
	for i, b := range bindings {
		rows[i] = []string{key(b.Name), key(b.Resource), human(b.Left)}
	}
	return limited(a.out, []string{"BINDING", "RESOURCE", "LEFT"}, rows, most)
}

func (a *app) printBound(name string, b allocator.Binding) error {
	if a.json {
		return printJSON(a.out, boundDocument{a.namespace, name, bindingDocumentOf(b)})
	}
	_, err := fmt.Fprintf(a.out, "%s: %s is bound to %s, %s left\n", plain(name), key(b.Name), key(b.Resource), human(b.Left))
	return err
}

func (a *app) printUnbound(name string, was allocator.Binding) error {
	removed := was.Resource != ""
	if a.json {
		return printJSON(a.out, unboundDocument{boundDocument{a.namespace, name, bindingDocumentOf(was)}, removed})
	}
	text := "was not bound"
	if removed {
		text = "is bound to " + key(was.Resource) + " no more"
	}
	_, err := fmt.Fprintf(a.out, "%s: %s %s\n", plain(name), key(was.Name), text)
	return err
}
