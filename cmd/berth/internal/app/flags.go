package app

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

// flagError says of a flag that cannot be read what would be right.
func flagError(cmd *cobra.Command, err error) error {
	if cmd.HasSubCommands() { // which flags there are depends on the command
		if unknown := noCommand(cmd, cmd.Flags().Args()); unknown != nil {
			return unknown
		}
	}
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	var refused *berth.ConfigError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		// The text after a single - is not repeated, since it may be -redis=URL.
		return fmt.Errorf("unknown flag -%s; long flags begin with --", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		return fmt.Errorf("unknown flag --%s%s", unknown.GetSpecifiedName(), likeFlag(cmd, unknown.GetSpecifiedName()))
	case errors.As(err, &missing):
		return fmt.Errorf("--%s needs a value: %s", missing.GetSpecifiedName(), form(missing.GetFlag()))
	case errors.As(err, &invalid) && errors.Is(err, errTwice):
		return berth.Invalid("--"+invalid.GetFlag().Name, "%w", errTwice)
	case errors.As(err, &refused): // the flag says it itself
		return refused
	case errors.As(err, &invalid) && tooLong(invalid):
		return berth.Invalid("--"+invalid.GetFlag().Name, "%q is too long; the longest time is about 292 years, 2562047h", invalid.GetValue())
	case errors.As(err, &invalid):
		return berth.Invalid("--"+invalid.GetFlag().Name, "%q is not %s", invalid.GetValue(), form(invalid.GetFlag()))
	case errors.As(err, &syntax):
		return errors.New("a flag has no name; long flags begin with -- and a letter")
	}
	return err
}

// errTwice refuses a second value of a flag that has one.
var errTwice = errors.New("it is given twice, with different values")

// single is the value of a flag that has one. The same value may be given again: cobra reads all flags
// twice when it completes a word.
type single struct {
	pflag.Value
	given bool
	text  string
}

func (s *single) Set(text string) error {
	if s.given && text != s.text {
		return errTwice
	}
	s.given, s.text = true, text
	return s.Value.Set(text)
}

// singles lets the flags of all commands have one value each, but those that are there to be repeated.
func singles(cmd *cobra.Command) {
	wrap := func(flag *pflag.Flag) {
		if _, many := flag.Value.(pflag.SliceValue); !many {
			flag.Value = &single{Value: flag.Value}
		}
	}
	cmd.PersistentFlags().VisitAll(wrap)
	cmd.Flags().VisitAll(wrap)
	for _, sub := range cmd.Commands() {
		singles(sub)
	}
}

// duration is how a time is written, however long it is.
var duration = regexp.MustCompile(`^[-+]?(` + number + `d(` + number + unit + `)*|(` + number + unit + `)+)$`)

const (
	number = `(\d+(\.\d*)?|\.\d+)`
	unit   = `(ns|us|µs|μs|ms|s|m|h)`
)

// days is a time that begins with days: the sign, the number of days, the rest.
var days = regexp.MustCompile(`^([-+]?)(\d+(?:\.\d*)?|\.\d+)d([\d.].*)?$`)

// timeFlag is the value of a flag for a time: as Go writes it, with days before it.
type timeFlag struct {
	span    *time.Duration
	endless bool // "forever" is a time, too
}

// TimeVar adds a flag for a time, such as 30s, 1h30m or 1d12h.
func TimeVar(flags *pflag.FlagSet, span *time.Duration, name string, value time.Duration, usage string) {
	*span = value
	flags.Var(timeFlag{span: span}, name, usage)
}

// EndlessVar adds a flag for a time that may be forever.
func EndlessVar(flags *pflag.FlagSet, span *time.Duration, name string, value time.Duration, usage string) {
	*span = value
	flags.Var(timeFlag{span, true}, name, usage)
}

func (f timeFlag) Set(text string) (err error) {
	if f.endless && text == "forever" {
		*f.span = berth.Forever
		return nil
	}
	*f.span, err = ParseTime(text)
	return err
}

func (f timeFlag) String() string {
	if f.span == nil || *f.span == 0 {
		return "" // no default is shown
	}
	return f.span.String()
}

// Type is that of pflag's own flags for times: help and errors go by it.
func (timeFlag) Type() string { return "duration" }

// ParseTime is time.ParseDuration, with days of 24 hours before the hours.
func ParseTime(text string) (time.Duration, error) {
	const day = 24
	parts := days.FindStringSubmatch(text)
	if parts == nil {
		return time.ParseDuration(text)
	}
	hours, err := time.ParseDuration(parts[1] + parts[2] + "h")
	if err != nil || parts[3] == "" && hours.Abs() <= math.MaxInt64/day {
		return day * hours, err
	}
	rest, err := time.ParseDuration(parts[1] + parts[3])
	if err == nil && hours.Abs() > (math.MaxInt64-rest.Abs())/day {
		err = fmt.Errorf("%q is too long", text)
	}
	return day*hours + rest, err
}

// tooLong reports whether a value is a time, and only too long for one.
func tooLong(invalid *pflag.InvalidValueError) bool {
	return invalid.GetFlag().Value.Type() == "duration" && duration.MatchString(invalid.GetValue())
}

// form is what the value of a flag has to look like.
func form(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "int":
		return "a whole number"
	case "duration":
		return "a time such as 500ms, 30s, 1h30m or 1d12h"
	case "bool":
		return "true or false"
	case "kind":
		return "one of " + strings.Join(kindWords, ", ")
	default:
		name, _ := pflag.UnquoteUsage(flag)
		return name
	}
}

// Arguments requires as many arguments as there are names for them.
func Arguments(names ...string) cobra.PositionalArgs { return ArgumentsFrom(len(names), names...) }

// ArgumentsFrom requires the first of the arguments that there are names for.
func ArgumentsFrom(least int, names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) > len(names):
			return fmt.Errorf("%q is one argument too many", args[len(names)])
		case len(args) < least:
			return fmt.Errorf("%s is missing", names[len(args)])
		}
		return nil
	}
}

// Group makes a command of commands.
func Group(cmd *cobra.Command, commands ...*cobra.Command) *cobra.Command {
	cmd.Args = noCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(commands...)
	return cmd
}

// Force adds --force to a command that touches what others hold.
func Force(cmd *cobra.Command, forced *bool) {
	cmd.Flags().BoolVar(forced, "force", false, "required: whoever holds it is not asked")
}

// NeedForce refuses a call without it.
func NeedForce(forced bool) error {
	if !forced {
		return Usage("it may be somebody else's: say --force if that is meant")
	}
	return nil
}

// CheckName refuses what cannot be a NAME.
func CheckName(name string) error { return InFlags(keyspace.CheckName(name), "name", "NAME") }

// QuotedFlag adds --quoted to a command that takes keys.
func QuotedFlag(cmd *cobra.Command, quoted *bool) {
	cmd.Flags().BoolVar(quoted, "quoted", false, `read keys in double quotes with their escapes, such as "a\x00b"`)
}
