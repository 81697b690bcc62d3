package link

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
)

// reader keeps the bytes of what it has read since the last take.
type reader struct {
	buf *bufio.Reader
	raw []byte
}

func newReader(c net.Conn) *reader { return &reader{buf: bufio.NewReader(c)} }

func (r *reader) take() []byte {
	raw := r.raw
	r.raw = nil
	return raw
}

// line reads one line, and returns its first byte and the rest without CRLF.
func (r *reader) line() (head byte, rest string, err error) {
	line, err := r.buf.ReadBytes('\n')
	if err != nil {
		return 0, "", err
	}
	r.raw = append(r.raw, line...)
	if len(line) < 3 {
		return 0, "", fmt.Errorf("link: malformed line %q", line)
	}
	return line[0], string(line[1 : len(line)-2]), nil
}

// value reads one value and returns the text of the first string in it.
func (r *reader) value() (text string, err error) {
	head, rest, err := r.line()
	if err != nil || (head != '$' && head != '*') {
		return rest, err
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		return "", fmt.Errorf("link: malformed length %q", rest)
	}
	if head == '$' {
		if n < 0 {
			return "", nil
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(r.buf, body); err != nil {
			return "", err
		}
		r.raw = append(r.raw, body...)
		return string(body[:n]), nil
	}
	for i := range n {
		element, err := r.value()
		if err != nil {
			return "", err
		}
		if i == 0 {
			text = element
		}
	}
	return text, nil
}

// readReply reads one reply, and returns the first text in it.
func readReply(r *reader) (first string, raw []byte, err error) {
	first, err = r.value()
	return first, r.take(), err
}

// readCommand reads one command.
func readCommand(r *reader) (words []string, raw []byte, err error) {
	head, rest, err := r.line()
	if err != nil {
		return nil, nil, err
	}
	n, err := strconv.Atoi(rest)
	if err != nil || head != '*' || n < 1 {
		return nil, nil, fmt.Errorf("link: malformed command %c%s", head, rest)
	}
	for range n {
		word, err := r.value()
		if err != nil {
			return nil, nil, err
		}
		words = append(words, word)
	}
	return words, r.take(), nil
}

// command is a command as a client sends it.
func command(words ...string) []byte {
	raw := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		raw = fmt.Appendf(raw, "$%d\r\n%s\r\n", len(word), word)
	}
	return raw
}
