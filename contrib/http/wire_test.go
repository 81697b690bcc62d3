package berthhttp_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	berthhttp "github.com/berth-go/berth/contrib/http"
)

// send writes a request to a connection, and lets everything settle.
func send(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: berth\r\n\r\n")
	require.NoError(t, err)
	synctest.Wait()
}

func TestAClientThatGoesAwayLeavesTheLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		done, sem := make(chan struct{}), w.web(1)
		handler := w.limit(sem, &berthhttp.Options{MaxWait: time.Hour, MaxWaiting: 1}, until(done))
		first, conn := begin(handler), w.serve(handler)()
		send(t, conn)
		require.Equal(t, http.StatusServiceUnavailable, get(handler).Code, "one waits already")

		require.NoError(t, conn.Close())
		synctest.Wait()
		next := begin(handler)
		require.Empty(t, next, "it waits in the place of the one that left")
		close(done)
		require.Equal(t, http.StatusOK, (<-first).Code)
		require.Equal(t, http.StatusOK, (<-next).Code)
	})
}

func TestAClientThatGoesAwayIsServedNoLonger(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		handler := w.limit(w.web(1), &berthhttp.Options{MaxWaiting: -1}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		conn := w.serve(handler)()
		send(t, conn)
		require.Equal(t, http.StatusServiceUnavailable, get(handler).Code)
		require.NoError(t, conn.Close())
		synctest.Wait()
		next := begin(handler)
		require.Empty(t, next, "it has the permit")
		require.Equal(t, http.StatusServiceUnavailable, get(handler).Code)
		w.server.LoseAll("web")
		<-next
	})
}

func TestAStreamHoldsItsPermitUntilItEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		handler := w.limit(w.web(1), &berthhttp.Options{MaxWaiting: -1}, func(w http.ResponseWriter, _ *http.Request) {
			for i := range 3 {
				fmt.Fprintln(w, i)
				if err := http.NewResponseController(w).Flush(); err != nil {
					return
				}
				time.Sleep(time.Minute)
			}
		})
		conn := w.serve(handler)()
		begun := time.Now()
		send(t, conn)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Zero(t, time.Since(begun), "the first part is there at once")
		require.Equal(t, http.StatusServiceUnavailable, get(handler).Code)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, "0\n1\n2\n", string(text))
		require.Equal(t, 3*time.Minute, time.Since(begun))
		require.NoError(t, answer.Body.Close())

		send(t, conn)
		answer, err = http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode, "whoever has the whole answer finds the place free")
		_, err = io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
	})
}

// One middleware in the other, as for a limit of all and one of each tenant.
func TestTheFilesOfAnUploadAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	inWorld(t, func(t *testing.T, w *world) {
		path := ""
		handler := w.limit(w.web(2), nil, func(_ http.ResponseWriter, r *http.Request) {
			if r.ParseMultipartForm(1) != nil { // one byte is kept in memory
				return
			}
			if file, err := r.MultipartForm.File["file"][0].Open(); err == nil {
				path = file.(*os.File).Name()
				_ = file.Close()
			}
		})
		conn := w.serve(w.limit(w.web(2), nil, handler.ServeHTTP))()
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		part, err := form.CreateFormFile("file", "file")
		require.NoError(t, err)
		_, err = fmt.Fprint(part, "some bytes")
		require.NoError(t, err)
		require.NoError(t, form.Close())
		upload, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://berth/", &body)
		require.NoError(t, err)
		upload.Header.Set("Content-Type", form.FormDataContentType())
		require.NoError(t, upload.Write(conn))
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		synctest.Wait()
		require.NotEmpty(t, path)
		require.NoFileExists(t, path)
	})
}
