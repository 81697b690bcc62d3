package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// resources is an operator that knows resources.
type resources interface {
	operator
	Resource(ctx context.Context, name, key string) (allocator.ResourceInfo, error)
}

// resourceArgument is a resource that a command may be given, as its second argument or
// by --resource.
type resourceArgument struct {
	flag   string
	quoted bool
	key    string // "" for none
}

func (r *resourceArgument) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.flag, "resource", "", "end the holds of this `RESOURCE`, also where it looks like a claim")
	quotedFlag(cmd, &r.quoted)
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
	if r.key, err = keyOf(text, r.quoted); err != nil {
		return berth.Invalid(where, "%s", err)
	}
	return nil
}

// absent is the error for a resource that is not in its pool.
func (a *app) absent(name, resource string) error {
	return exitWith(exitFailed, fmt.Errorf("resource %s is not in pool %q in namespace %q", key(resource), name, a.namespace))
}

// presentResource reads a resource, which has to be in its pool.
func (a *app) presentResource(ctx context.Context, ops resources, name, resource string) (allocator.ResourceInfo, error) {
	info, err := ops.Resource(ctx, name, resource)
	if err == nil && info.State == allocator.Absent {
		err = a.absent(name, resource)
	}
	return info, err
}
