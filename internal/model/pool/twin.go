package pool

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// twin copies the pool, runs a script on the copy as World.General has it, and returns what
// checks that the run on the pool itself has done the same.
func (d *driver) twin(t *rapid.T, script string, args []string) (same func(r *scriptkit.Reply)) {
	t.Helper()
	// pool_sharers has no plain case, and a scan of a copy may have another order.
	if d.General == nil || d.alone() || script == "pool_sharers" {
		return func(*scriptkit.Reply) {}
	}
	twins := make([]string, len(d.keys))
	for n, key := range d.keys {
		twins[n] = "twin:" + key // in the same slot
		d.do(t, "DEL", twins[n])
		d.do(t, "COPY", key, twins[n])
	}
	was := d.dump(t, twins)
	args = slices.Clone(args)
	for n, arg := range args {
		args[n] = strings.ReplaceAll(arg, d.prefix, "twin:"+d.prefix) // nobody hears it
	}
	want := texts(d.evaluate(t, d.General, twins, script, args))
	made, now := d.dump(t, twins), d.Now()
	d.do(t, append([]string{"DEL"}, twins...)...)
	return func(r *scriptkit.Reply) {
		t.Helper()
		got := texts(*r)
		if r.Status() == scriptkit.Plain {
			got = inFull(r.Str(1), script, args)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s %q replies %q, in general %q, to\n%s", script, args, got, want, was)
		}
		if got := d.dump(t, d.keys); got != made {
			t.Fatalf("%s %q makes\n%s\nin general\n%s\nof\n%s", script, args, got, made, was)
		}
		if !d.Now().Equal(now) {
			t.Fatal("all of that is one instant")
		}
	}
}

// inFull is what a plain case says in one text, as the general way says it.
func inFull(said, script string, args []string) []string {
	words := strings.SplitN(said, " ", 3)
	number, rest := words[0], strings.Fields(args[len(args)-1])
	switch {
	case script == "pool_release":
		return []string{"released", "0", number, "1"}
	case len(number) == 16:
		return []string{"granted", number[:13], number, args[2], "1", counted(words[1]), words[2]}
	default:
		words = strings.Fields(said)
		flags := map[string]string{"0": "8", "1": "12"}[words[1]]
		return []string{"queued", number, "0", rest[1], flags, counted(words[4]), "", rest[2] + " " + number, words[3], words[2]}
	}
}

// counted is a count as the general way says it.
func counted(text string) string {
	n, err := state.ParseCount(text)
	if err != nil {
		return text
	}
	return dec(int64(n))
}

// everyWay takes the pool through every plain case, whatever the history draws later, and leaves it
// as it was.
func (d *driver) everyWay(t *rapid.T) {
	others := d.others
	d.others = []opinion{{}}
	d.puts(t, 0, 0, 1, true, d.some[:1])
	d.Advance(time.Millisecond, d.keys...) // what is of the microsecond of a resource's turn is not plain
	d.tick(t)
	var both []*claim
	for _, node := range []string{nodeA, nodeB} {
		d.made++
		c := &claim{node: node, renews: true, wait: 1000, lease: 1000, wants: wants{kind: "o"}}
		c.id = fmt.Sprintf("%s.%03d", c.node, d.made)
		c.terms, c.asked = d.terms(c), first{c.lease, c.renews}
		d.claims[c.id] = c
		both, d.ids = append(both, c), append(d.ids, c.id)
		d.ask(t, c, true)
		d.Advance(300*time.Millisecond, d.keys...)
		d.tick(t)
		if node == nodeA {
			d.calls(t, c.node, "beat", c)
		}
	}
	for _, c := range both {
		d.returns(t, c, c.node, 0, 0, c.fence, 0)
		d.Advance(time.Millisecond, d.keys...) // what is of the microsecond of a grant is not plain
		d.tick(t)
	}
	d.checkPushes(t)
	d.do(t, append([]string{"DEL"}, d.keys...)...)
	d.forget()
	d.others = others
}

// comeAndGo has claims ask where it is calm, mostly for what is plain, and releases them.
func (d *driver) comeAndGo(t *rapid.T) {
	if rapid.Bool().Draw(t, "where it is calm") {
		d.do(t, append([]string{"DEL"}, d.keys...)...)
		d.forget()
		d.puts(t, 0, 0, 1, rapid.Bool().Draw(t, "whole"), d.some)
	}
	d.Advance(time.Millisecond, d.keys...) // what became free has used up some microseconds
	d.tick(t)
	some := make([]*claim, rapid.IntRange(1, 3).Draw(t, "claims"))
	for n := range some {
		d.plain = rapid.IntRange(0, 3).Draw(t, "plainly") > 0
		c := d.claim(t)
		some[n], d.plain = c, false
		d.ask(t, c, !rapid.Bool().Draw(t, "try"))
		d.Advance(pickOf(t, "by", time.Microsecond, time.Millisecond, 50*time.Millisecond, 600*time.Millisecond), d.keys...)
		d.tick(t)
		if rapid.Bool().Draw(t, "renews") {
			d.calls(t, c.node, pickOf(t, "mode", "beat", "renew", "detach", "keep 1000", "renew 1000"), c)
		}
	}
	for _, c := range some {
		d.returns(t, c, c.node, 0, pickOf[int64](t, "rest", 0, 0, 0, 300), c.fence, pickOf[int64](t, "expires", 0, 0, 0, 600))
	}
}

// dump is all that the server has of a pool, as text.
func (d *driver) dump(t *rapid.T, keys []string) string {
	t.Helper()
	var all []any
	for n, key := range keys {
		all = append(all, d.number(t, "PEXPIRETIME", key))
		if n == 1 || n == 3 {
			line, err := d.do(t, "ZRANGE", key, "0", "-1", "WITHSCORES").AsZScores()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%+v", line), "\n")
			continue
		}
		fields, err := d.do(t, "HGETALL", key).AsStrMap()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%q", fields), "\n")
	}
	return fmt.Sprint(all...)
}

// texts are the words of a reply. A number may also be the text of one.
func texts(r scriptkit.Reply) []string {
	words := make([]string, r.Len())
	for n := range words {
		words[n] = r.Str(n)
	}
	for len(words) > 0 && (words[len(words)-1] == "" || words[len(words)-1] == "0") {
		words = words[:len(words)-1] // as if it were missing
	}
	return words
}
