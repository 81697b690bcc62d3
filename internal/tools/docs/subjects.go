package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"
)

// subjectsSince is the newest commit whose subject nobody checked.
const subjectsSince = "9014173106625cfe1424d5fe1af81a14b579d162"

// subjectLength is how many characters of a subject every tool shows.
const subjectLength = 72

// subjectForm has areas, and at least two words that say what changed.
var subjectForm = regexp.MustCompile(`^[a-z][a-z0-9_/-]*(, [a-z][a-z0-9_/-]*)*: \S+ .*\S$`)

// checkSubjects checks the subject of each commit after since; a merge may have any. Where the history does not reach
// back to since, it checks nothing and returns a note.
func checkSubjects(ctx context.Context, root, since string) (note string, err error) {
	const unchecked = "the subjects of commits were not checked: "
	if _, err := os.Stat(filepath.Join(root, ".git")); errors.Is(err, os.ErrNotExist) {
		return unchecked + "this is no clone", nil
	}
	shallow, err := git(ctx, root, "rev-parse", "--is-shallow-repository")
	if err != nil {
		return "", err
	}
	if _, err := git(ctx, root, "merge-base", "--is-ancestor", since, "HEAD"); err != nil || shallow != "false\n" {
		return unchecked + "the history of this clone does not have all since " + since, nil
	}
	out, err := git(ctx, root, "log", "--no-merges", "--format=%h %s", since+"..HEAD")
	if err != nil {
		return "", err
	}
	var problems []error
	for line := range strings.Lines(out) {
		id, subject, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if n := utf8.RuneCountInString(subject); n > subjectLength {
			problems = append(problems,
				fmt.Errorf("commit %s: the subject has %d characters, at most %d are shown: %s", id, n, subjectLength, subject))
		}
		if !subjectForm.MatchString(subject) || strings.HasSuffix(subject, ".") {
			problems = append(problems, fmt.Errorf("commit %s: the subject is not of the form `area: what changed`: %s", id, subject))
		}
	}
	return "", errors.Join(problems...)
}

// git returns what a git command prints.
func git(ctx context.Context, root string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}
