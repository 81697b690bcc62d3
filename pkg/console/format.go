package console

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/keyspace"
)

//go:embed templates static
var files embed.FS

// version changes with the files.
var version = func() string {
	sum := sha256.New()
	all, _ := fs.Glob(files, "static/*")
	for _, path := range all {
		b, _ := files.ReadFile(path)
		sum.Write(b)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}()

// static serves a file beside the pages. Its address changes with what is in the files. http.FileServer would list them,
// and lead elsewhere.
func (c *Console) static(w http.ResponseWriter, r *http.Request) {
	name := "static/" + r.PathValue("file")
	if f, err := fs.Stat(files, name); err != nil || f.IsDir() {
		c.refuse(w, r, errNoPage)
		return
	}
	if r.URL.Query().Get("v") == version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeFileFS(w, r, files, name)
}

func parsed() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"plain": text.Plain, "quoted": text.Quoted, "kind": kindWord, "age": age, "until": until, "readAt": readAt, "utc": utc,
		"to": to, "row": row, "problem": problem, "short": short, "count": view.Count, "clock": clock, "cycle": view.CycleSays,
		"link": view.LinkSays, "ends": view.EndSays,
	}).ParseFS(files, "templates/*.html"))
}

// frame is what the templates of whole pages get.
type frame struct {
	scene
	Page, Title, Namespace, Version string
	Root                            string // the way from here to the console's folder, "" if it is this one
	User                            string
	Beat                            beat
	Read                            time.Time                // when it was read, by the server's clock
	Live                            map[string]template.HTML // the regions
	Events                          string                   // the address of the stream, "" for none
	Error                           string
	Again                           bool  // the page reloads itself
	Done                            *deed // what was done before, nil for nothing
}

func (c *Console) frame(a Access, page, title string) *frame {
	f := &frame{
		scene: scene{Act: a.Act, Now: time.Now()}, Page: page, Title: title, Namespace: text.Plain(c.space), Version: version,
		User: a.User,
	}
	if a.Look {
		f.Beat.Cycles = c.cycles()
	}
	return f
}

// render answers with a page.
func (c *Console) render(w http.ResponseWriter, code int, name string, f *frame) {
	var out bytes.Buffer
	if err := c.pages.ExecuteTemplate(&out, name+".html", f); err != nil {
		http.Error(w, "This page cannot be shown: "+text.Escaped(err.Error()), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(out.Bytes()) // nobody is left to tell
}

// kindWord is what one of a kind is called.
func kindWord(kind any) string {
	k := fmt.Sprint(kind)
	return cmp.Or(act.Nouns[keyspace.Kind(k)], text.Plain(k))
}

// ages is how long ago something was, in whole seconds: a script counts on from there, and says it in the same way.
func ages(d time.Duration) string {
	d = max(0, d)
	switch s := d / time.Second; {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%dd%02dh", s/86400, s/3600%24)
	}
}

// stamped is how long ago something was, or will be.
func stamped(how string, at time.Time, span time.Duration) template.HTML {
	if at.IsZero() {
		return "-"
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" %s="%d">%s</time>`,
		at.UTC().Format("2006-01-02T15:04:05.000Z"), how, at.UnixMilli(), ages(span)))
}

// age is for how long something has been so.
func age(now, since time.Time) template.HTML { return stamped("data-age", since, now.Sub(since)) }

// readAt is how long ago a row was read.
func readAt(now, at time.Time) template.HTML { return stamped("data-read", at, now.Sub(at)) }

// until is how long something lasts yet.
func until(now time.Time, left time.Duration) template.HTML {
	switch left {
	case 0:
		return "-"
	case berth.Forever:
		return "forever"
	}
	return stamped("data-left", now.Add(left).Round(100*time.Millisecond), left)
}

func utc(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }

// short returns an id without its random middle; the link leads to the whole id.
func short(id string) string {
	id = text.Plain(id)
	if runes := []rune(id); len(runes) > 20 {
		return string(runes[:8]) + "…" + string(runes[len(runes)-8:])
	}
	return id
}

// to is an address with a query: of pairs.
func to(page string, pairs ...any) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if v := fmt.Sprint(pairs[i+1]); v != "" {
			q.Set(fmt.Sprint(pairs[i]), v)
		}
	}
	if len(q) == 0 {
		return page
	}
	return page + "?" + q.Encode()
}

// row is the id of an element, by what it is about.
func row(about ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", about))
	return "r" + hex.EncodeToString(sum[:6])
}
