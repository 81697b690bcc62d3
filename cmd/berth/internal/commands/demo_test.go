package commands_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestTheDemoEndsWithASignal(t *testing.T) {
	t.Parallel()
	cmd := apptest.Command(t, "", "demo")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())
	var said bytes.Buffer
	for !strings.Contains(said.String(), "worker 2 asks") {
		chunk := make([]byte, 1000)
		n, err := out.Read(chunk)
		require.NoError(t, err)
		said.Write(chunk[:n])
	}
	apptest.Interrupt(t, cmd, time.Millisecond) // also right before it exits
	_, err = said.ReadFrom(out)                 // ends when no worker is left either
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
	require.Equal(t, "berth: ended by signal: interrupt\n", errs.String())
}

func TestTheDemoShowsItsPage(t *testing.T) {
	t.Parallel()
	cmd := apptest.Command(t, "", "demo", "--web")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())
	said := bufio.NewReader(out)
	line, err := said.ReadString('\n')
	require.NoError(t, err)
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(line)
	require.NotEmpty(t, address, line)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for page := ""; !strings.Contains(page, "name=workshop"); {
		resp, err := client.Get(address + "names")
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		if resp.StatusCode != http.StatusServiceUnavailable { // a busy machine has not read it in time
			require.Equal(t, http.StatusOK, resp.StatusCode)
			page = string(body)
		}
	}
	apptest.Interrupt(t, cmd, time.Millisecond)
	_, err = io.Copy(io.Discard, said)
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
	require.Equal(t, "berth: ended by signal: interrupt\n", errs.String())
}
