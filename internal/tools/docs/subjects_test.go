package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clone is a repository in a folder of the test's own.
type clone struct {
	t    *testing.T
	root string
}

func newClone(t *testing.T) clone {
	t.Helper()
	c := clone{t, t.TempDir()}
	c.git("init", "--quiet", "--initial-branch=main")
	return c
}

func (c clone) git(args ...string) string {
	c.t.Helper()
	out, err := git(c.t.Context(), c.root, append([]string{"-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
	require.NoError(c.t, err)
	return strings.TrimSpace(out)
}

// commit makes a commit, and returns its id.
func (c clone) commit(subject string) string {
	c.t.Helper()
	c.git("commit", "--quiet", "--allow-empty", "--message", subject)
	return c.git("rev-parse", "HEAD")
}

func TestASubjectThatNobodyFinds(t *testing.T) {
	t.Parallel()
	c := newClone(t)
	since := c.commit("no area, and the one from which on all have one")
	for _, test := range []struct{ name, subject, problem string }{
		{"an area", "pool: renew by one script", ""},
		{"two areas", "pool, top: renew by one script", ""},
		{"a path", "cmd/berth: print the version", ""},
		{"all that is shown", "pool: " + strings.Repeat("é", subjectLength-6-4) + " now", ""},
		{"more", "pool: " + strings.Repeat("e", subjectLength-5-4) + " now", "the subject has 73 characters, at most 72 are shown: pool: e"},
		{"no area", "Renew by one script", "is not of the form `area: what changed`: Renew by one script"},
		{"an area alone", "pool:", "is not of the form"},
		{"one word", "pool: fix", "is not of the form"},
		{"a sentence", "pool: renew by one script.", "is not of the form"},
		{"what is to be squashed", "fixup! pool: renew by one script", "is not of the form"},
	} {
		id := c.commit(test.subject)
		note, err := checkSubjects(t.Context(), c.root, since)
		require.Empty(t, note, test.name)
		if requireProblem(t, test.problem, err, test.name) {
			require.Equal(t, 1, strings.Count(err.Error(), "commit "+id[:7]), "%v", err)
		}
		c.git("reset", "--quiet", "--hard", since)
	}
}

func TestAMergeMayHaveAnySubject(t *testing.T) {
	t.Parallel()
	c := newClone(t)
	since := c.commit("first")
	c.commit("pool: renew by one script")
	c.git("checkout", "--quiet", "-b", "side", since)
	c.commit("Made at the side.")
	c.git("checkout", "--quiet", "main")
	c.git("merge", "--quiet", "--no-ff", "--message", "Merge of the side.", "side")
	_, err := checkSubjects(t.Context(), c.root, since)
	require.ErrorContains(t, err, ": Made at the side.", "what is merged was not there before")
	require.NotContains(t, err.Error(), "Merge of the side.")
}

func TestAHistoryThatDoesNotReachBackIsNotChecked(t *testing.T) {
	t.Parallel()
	c := newClone(t)
	base := c.commit("Of before.")
	c.commit("pool: renew by one script")
	since := c.commit("first")
	c.git("checkout", "--quiet", "-b", "side", base)
	c.commit("pool: release by one script")
	c.git("checkout", "--quiet", "main")
	c.git("merge", "--quiet", "--no-ff", "--message", "Merge", "side")
	_, err := checkSubjects(t.Context(), c.root, since)
	require.NoError(t, err)
	shallow := clone{t, t.TempDir()} // with the first commit of all, and without its way to that since which subjects are checked
	shallow.git("clone", "--quiet", "--depth=3", "file://"+c.root, ".")
	require.Contains(t, shallow.git("log", "--format=%s", since+"..HEAD"), "Of before.")
	older := newClone(t)
	older.commit("Of before.")
	for name, root := range map[string]string{"shallow": shallow.root, "of an older branch": older.root, "no clone": t.TempDir()} {
		note, err := checkSubjects(t.Context(), root, since)
		require.NoError(t, err, name)
		require.Contains(t, note, "were not checked", name)
	}
	require.NoError(t, os.WriteFile(c.root+"/.git/HEAD", nil, 0o600))
	_, err = checkSubjects(t.Context(), c.root, since)
	require.ErrorContains(t, err, "not a git repository", "what git refuses to read is no clone without that history")
}
