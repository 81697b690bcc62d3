package embedded

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// childURL is the variable that makes this test binary a child process: it then
// answers one question over pub/sub, and ends.
const childURL = "BERTH_EMBEDDED_CHILD"

func child(url string) int {
	if err := answer(url); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// answer connects as any program would, with nothing but the URL.
func answer(url string) error {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return err
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	questions := subscribe(ctx, client, "questions")
	if _, err := publish(client, "answers", "ready"); err != nil {
		return err
	}
	select {
	case question := <-questions.messages:
		_, err = publish(client, "answers", "to "+question)
		return err
	case err := <-questions.ended:
		return err
	}
}

func TestChildProcessNeedsOnlyTheURL(t *testing.T) {
	t.Parallel()
	server, err := StartListening("127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	client, err := server.Client()
	require.NoError(t, err)
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answers := subscribe(ctx, client, "answers")

	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+server.URL())
	cmd.Stderr = os.Stderr
	exited := make(chan error, 1)
	go func() {
		err := cmd.Run()
		if err != nil {
			cancel() // no answer will come
		}
		exited <- err
	}()

	require.Equal(t, "ready", next(t, answers))
	reached, err := publish(client, "questions", "who are you")
	require.NoError(t, err)
	require.EqualValues(t, 1, reached)
	require.Equal(t, "to who are you", next(t, answers))
	require.NoError(t, <-exited)

	cancel()
	require.ErrorIs(t, <-answers.ended, context.Canceled)
}

// next waits for a message until the subscription ends.
func next(t *testing.T, s *subscription) string {
	t.Helper()
	select {
	case message := <-s.messages:
		return message
	case err := <-s.ended:
		require.NoError(t, err)
		return ""
	}
}
