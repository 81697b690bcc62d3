package app

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/view"
)

// resourceArgument is a resource that a command may be given, as its second argument or
// by --resource.
type resourceArgument struct {
	flag   string
	quoted bool
	key    string // "" for none
}

func (r *resourceArgument) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.flag, "resource", "", "end the holds of this `RESOURCE`, also where it looks like a claim")
	QuotedFlag(cmd, &r.quoted)
}

func (r *resourceArgument) given(cmd *cobra.Command) bool { return cmd.Flags().Changed("resource") }

// read reads the key, from the flag or what stands behind the name.
func (r *resourceArgument) read(cmd *cobra.Command, args []string) (err error) {
	text, where := r.flag, "--resource"
	switch {
	case r.given(cmd) && len(args) > 0:
		return berth.Invalid("--resource", "with %q there are two to release; leave one of them out", args[0])
	case !r.given(cmd):
		text, where = args[0], "RESOURCE"
	}
	r.key, err = KeyArgument(where, text, r.quoted)
	return err
}

// Absent is the error for a resource that is not in its pool.
func (a *App) Absent(name, resource string) error {
	return Exit(ExitFailed, NotInPool(name, resource, a.Namespace))
}

// NotInPool says that a resource is not in a pool.
func NotInPool(name, resource, namespace string) error {
	return fmt.Errorf("resource %s is not in pool %q in namespace %q", view.Key(resource), name, namespace)
}
