// Command pictures takes pictures of the console, of a jam, by a real browser: each view at 1280 and at 390 pixels, light and
// dark. Those that the docs show go to docs/pictures, all to out/pictures.
//
//	make pictures
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/test/browser/chrome"
	"github.com/berth-go/berth/test/browser/jam"
	"github.com/berth-go/berth/test/harness"
)

// shown are the pictures that the docs show.
var shown = []string{"overview-1280-light", "overview-1280-dark", "name-1280-light", "cycles-1280-light", "pool-390-dark"}

// height is how much of a page the docs show at the most.
const height = 900

// options are the flags.
type options struct {
	into, all string
	only      string
	hostile   bool
	moves     time.Duration
}

func main() {
	jam.Dies()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	var o options
	flag.StringVar(&o.into, "into", "", "the folder of those that the docs show; without one, they are not changed")
	flag.StringVar(&o.all, "all", "out/pictures", "the folder of all")
	flag.StringVar(&o.only, "only", "", "views whose names begin so")
	flag.BoolVar(&o.hostile, "hostile", false, "with what only strangers write; not for the docs")
	flag.DurationVar(&o.moves, "moves", 40*time.Second, "for how long things move before the pictures are taken")
	flag.Parse()
	if o.hostile && o.into != "" {
		return errors.New("-hostile is not for the docs")
	}
	server, end, err := harness.Run()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	made, err := jam.Make(ctx, jam.Config{URL: server.URL(), Namespace: "shop", Lease: 10 * time.Second, Plain: !o.hostile})
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, made.Close(closing))
	}()
	address, end, err := serve(ctx, server.URL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	browser, err := chrome.Start(ctx)
	if err != nil {
		return err
	}
	defer browser.Close()
	return take(ctx, browser, made, address, o)
}

// serve serves the console of a jam, with actions.
func serve(ctx context.Context, url string) (address string, end func() error, err error) {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return "", nil, err
	}
	option.DisableCache = true
	redis, err := rueidis.NewClient(option)
	if err != nil {
		return "", nil, err
	}
	page, err := console.New(console.Config{Redis: redis, Namespace: "shop", AllowActions: true})
	if err != nil {
		return "", nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: page, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String() + "/", func() error {
		closing, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err := errors.Join(page.Close(closing), server.Close())
		redis.Close()
		return err
	}, nil
}

// take takes all pictures.
func take(ctx context.Context, browser *chrome.Browser, made *jam.Jam, address string, o options) error {
	// What is drawn over the time begins when somebody looks.
	tab, err := browser.Tab()
	if err != nil {
		return err
	}
	defer tab.Close()
	if err := tab.Open(ctx, address+jam.NamePath(keyspace.Sem, jam.Full)); err != nil {
		return err
	}
	if err := move(ctx, made, o.moves); err != nil {
		return err
	}
	views, err := made.Views(ctx)
	if err != nil {
		return err
	}
	views = slices.DeleteFunc(views, func(v jam.View) bool { return !strings.HasPrefix(v.Name, o.only) })
	for _, v := range views {
		if err := o.pictures(ctx, browser, v, address); err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
	}
	return nil
}

// move releases some holds, so that there is something to be seen.
func move(ctx context.Context, made *jam.Jam, during time.Duration) error {
	steps := len(made.Holds)
	for i := range steps {
		if err := made.Holds[i].Release(ctx); err != nil {
			return err
		}
		select {
		case <-time.After(during / time.Duration(steps)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// pictures takes those of a view.
func (o *options) pictures(ctx context.Context, browser *chrome.Browser, v jam.View, address string) error {
	tab, err := browser.Tab()
	if err != nil {
		return err
	}
	defer tab.Close()
	if err := tab.Open(ctx, address+v.Path); err != nil {
		return err
	}
	// A page that is not there is not live.
	if err := tab.Until(ctx, `!document.getElementById("live") || document.querySelector(".live.on")`); err != nil {
		return err
	}
	for _, looks := range []chrome.Looks{{Width: 1280, Height: 800}, {Width: 1280, Height: 800, Dark: true}, {Width: 390, Height: 844}, {Width: 390, Height: 844, Dark: true}} {
		if err := tab.Look(ctx, looks); err != nil {
			return err
		}
		name := fmt.Sprintf("%s-%d-%s", strings.Map(simple, v.Name), looks.Width, map[bool]string{false: "light", true: "dark"}[looks.Dark])
		if err := o.keep(ctx, tab, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, wrong := range tab.Wrong() {
		fmt.Fprintf(os.Stderr, "%s: %s\n", v.Name, wrong)
	}
	return nil
}

// keep takes one, and writes it where it belongs. The docs show the top of a page.
func (o *options) keep(ctx context.Context, tab *chrome.Tab, name string) error {
	shot, err := tab.Picture(ctx)
	if err != nil {
		return err
	}
	if err := write(o.all, name, shot); err != nil || o.into == "" || !slices.Contains(shown, name) {
		return err
	}
	var below int // nothing is
	if err := tab.Eval(ctx, `Math.ceil(document.querySelector("footer").getBoundingClientRect().bottom)`, &below); err != nil {
		return err
	}
	small, err := smaller(shot, min(below, height))
	if err != nil {
		return err
	}
	if len(small) > most {
		return fmt.Errorf("it has %d bytes, more than %d", len(small), most)
	}
	return write(o.into, name, small)
}

func write(folder, name string, picture []byte) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644)
}

func simple(r rune) rune {
	if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
		return r
	}
	return '-'
}
