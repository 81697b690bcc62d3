package main

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

var (
	workflowStep = regexp.MustCompile(`^\s*(?:- )?run:\s*(.*)$`)
	makeCommand  = regexp.MustCompile(`^make ([a-z-]+)((?: [A-Z_]+=(?:\$\{\{[^}]*\}\}|\S+))*)$`)
	makeVariable = regexp.MustCompile(` ([A-Z_]+)=`)
)

// checkWorkflows checks that the steps of GitHub's workflows call make alone, with targets and variables that there are:
// what they do can then be done and tested anywhere.
func checkWorkflows(tree fs.FS) error {
	makefile, err := fs.ReadFile(tree, "Makefile")
	if err != nil {
		return err
	}
	files, err := fs.Glob(tree, ".github/workflows/*")
	if err != nil {
		return err
	}
	has := func(pattern, name string) bool {
		return regexp.MustCompile(`(?m)^` + name + pattern).Match(makefile)
	}
	var problems []error
	for _, file := range files {
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			step := workflowStep.FindStringSubmatch(line)
			if step == nil {
				continue
			}
			command := makeCommand.FindStringSubmatch(step[1])
			if command == nil {
				problems = append(problems, fmt.Errorf("%s:%d: a step runs something else than make and one target: %s", file, i+1, step[1]))
				continue
			}
			if !has(`:`, command[1]) {
				problems = append(problems, fmt.Errorf("%s:%d: the Makefile has no target %s", file, i+1, command[1]))
			}
			for _, name := range makeVariable.FindAllStringSubmatch(command[2], -1) {
				if !has(` [:?]?=`, name[1]) {
					problems = append(problems, fmt.Errorf("%s:%d: the Makefile has no variable %s", file, i+1, name[1]))
				}
			}
		}
	}
	return errors.Join(problems...)
}
