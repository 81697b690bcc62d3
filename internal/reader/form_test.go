package reader_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
)

// history has claims come and go by chance, and others write to the keys of the name.
type history struct {
	*world
	*rand.Rand
	claims   int
	capacity int
	broken   bool // so that scripts may refuse it
}

// own are the arguments of a kind that a claim asks with.
func (h *history) own() []string {
	switch h.kind {
	case keyspace.Sem:
		return []string{state.Calm(h.capacity)}
	case keyspace.Lock:
		return []string{[]string{"", "work queued 0 me"}[h.IntN(2)]}
	}
	return []string{"", ""}
}

func (h *history) asks() {
	claim := id("c", h.claims)
	h.claims++
	h.ask(claim, h.own(), func(r *state.Record) {
		r.Priority, r.Weight = 5*h.IntN(13)*h.IntN(2), 1
		if h.kind == keyspace.Sem {
			r.Weight += h.IntN(2)
		}
		if h.kind == keyspace.Lock && h.IntN(2) == 0 {
			r.Owner = "me"
		}
		r.Wait, r.Lease = time.Duration(1+h.IntN(200))*ms, time.Duration(1+h.IntN(200))*ms
		if h.IntN(4) == 0 {
			r.Wait, r.Lease = time.Minute, time.Minute
		}
	})
}

// step is one thing that happens.
func (h *history) step() {
	if h.broken && h.IntN(3) == 0 {
		h.anew()
	}
	what := 8 + h.IntN(9)
	if !h.broken {
		for range [...]int{1, 9, 9, 60}[h.IntN(4)] {
			h.asks()
		}
		what = h.IntN(17)
	}
	switch claim, at := id("c", h.IntN(h.claims)), bandsOf(time.Now().UnixMilli()); what {
	case 0, 1, 2:
		h.release(claim)
	case 3, 4:
		h.Advance(time.Duration(1+h.IntN(100)) * ms)
	case 5:
		h.Advance(time.Minute)
	case 6:
		h.write("sweep", "n", "0")
	case 7:
		h.anew()
	case 8:
		h.breaks(h.State, "SET", h.State, [...]string{"1795470968951844", "f9 of a release to come"}[h.IntN(2)])
	case 9:
		h.breaks(h.Line)
	case 10, 15, 16:
		score, names := number(at[h.IntN(len(at))]), slices.Concat(shorts, []string{"h:" + claim, "e:a", "x:b"})
		band := [...]string{"h:a", "e:a", "x:a"}[h.IntN(3)]
		for n := range [...]int{2, 60}[h.IntN(2)] {
			member := names[h.IntN(len(names))]
			if n > 4 {
				member = id(band, n)
			}
			h.breaks("", "ZADD", h.Line, score, member)
		}
	case 11:
		h.breaks("", "HSET", h.State, "c:"+claim, "damaged")
	case 12:
		h.breaks("", "HDEL", h.State, "c:"+claim)
	case 13:
		h.breaks("", "HSET", h.State, "v", "9 words of a release to come")
	case 14:
		key := [...]string{h.State, h.Line}[h.IntN(2)]
		h.breaks(key, "RPUSH", key, "mine")
	}
}

// anew has the name begin again, thin where it may be.
func (h *history) anew() {
	h.Do(append([]string{"DEL", h.State, h.Line}, h.Others...)...)
	h.capacity = [...]int{4, 90}[h.IntN(2)]
	if h.broken = false; h.kind == keyspace.Pool {
		h.pooled()
	}
	h.asks()
}

// breaks deletes a key, and writes what no script would. What cannot be written is not.
func (h *history) breaks(key string, words ...string) {
	h.broken = true
	for _, command := range [][]string{{"DEL", key}, words} {
		if len(command) > 0 {
			h.Redis.Do(ctx, h.Redis.B().Arbitrary(command...).Build())
		}
	}
}

func (w *world) rowBy(k int, form *reader.Form) reader.Row {
	w.T.Helper()
	of := func(berth.Ref) *reader.Form { return form }
	if form == nil {
		of = nil
	}
	return testkit.Must(w.reader.Rows(ctx, w.Redis, k, of, berth.Ref{Kind: w.kind, Name: name})).In(w.T)[0]
}

// A form that is right, one that has become wrong, and none lead to the same.
func TestARowIsTheSameByWhateverIsKnownOfItsForm(t *testing.T) {
	for kind := range kinds {
		for seed := range uint64(3) {
			inWorldOf(t, fmt.Sprint(kind, seed), kind, func(t *testing.T, w *world) {
				h := &history{world: w, Rand: rand.New(rand.NewPCG(seed, 0))}
				h.anew()
				var forms [2][3]reader.Form
				for n := range 100 {
					h.step()
					for i, k := range []int{1, 20} {
						plain := h.rowBy(k, nil)
						for each := range forms[i] {
							if n%(1+each*each*7) == 0 {
								for range 2 { // the second goes by what the first one found
									require.Equal(t, plain, h.rowBy(k, &forms[i][each]), "step %d, k %d", n, k)
								}
							}
						}
					}
				}
			})
		}
	}
}

func TestARowByItsFormIsOfOneMomentOrSaysThatTheNameMoves(t *testing.T) {
	for what, m := range moves {
		inWorldOf(t, what, m.kind, func(t *testing.T, w *world) {
			m.before(w)
			var form reader.Form
			w.rowBy(20, &form)
			trips := 1
			w.reader.Between(func() {
				if trips++; trips == 2 {
					m.moves(w)
				}
			})
			got := w.rowBy(20, &form)
			w.reader.Between(nil)
			if !got.Moving {
				require.Equal(t, "a slim name", what, "that is read again")
				require.Equal(t, w.rowBy(20, nil), got)
			}
		})
	}
}

// What has become of a name since is read as if nothing was known, in as many trips more as that takes.
func TestAFormSavesTripsAndCommands(t *testing.T) {
	inWorld(t, keyspace.Sem, func(t *testing.T, w *world) {
		var form reader.Form
		trips := 0
		w.reader.Between(func() { trips++ })
		reads := func(want int) {
			t.Helper()
			trips = 1
			w.rowBy(20, &form)
			require.Equal(t, want, trips)
		}
		w.crowd(5, 20)
		reads(3)
		reads(2)
		w.crowd(5, 100)
		reads(2 + 2)
		reads(2)
		w.crowd(60, 100)
		reads(2 + 2)
		reads(2)
		form = reader.Form{}
		reads(3)
		w.Do("DEL", w.State, w.Line)
		reads(1)
		w.Do("SET", w.State, "1795470968951844")
		reads(1)
		reads(1)

		thin := func() { w.Do("DEL", w.State, w.Line); w.Do("SET", w.State, "1795470968951844") }
		w.Do("DEL", w.State)
		w.crowd(5, 20)
		w.rowBy(20, &form)
		thin()
		trips = 1
		w.reader.Between(func() {
			switch trips++; trips {
			case 2:
				w.Do("DEL", w.State)
				w.crowd(5, 20)
			case 3:
				thin()
			}
		})
		got := w.rowBy(20, &form)
		require.NoError(t, got.Err, "its form may change once while it is read, also where it has before")
		require.Equal(t, []int{4, 1}, []int{trips, got.Capacity})
	})
}
