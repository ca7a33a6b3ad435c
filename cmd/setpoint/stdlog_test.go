package main

import (
	"bytes"
	"log"
	"strings"
	"testing"
)

// What net/http says of a server that answers unasked is said without its words.
func TestUnquoted(t *testing.T) {
	var out bytes.Buffer
	l := log.New(unquoted{&out}, "", 0)
	l.Printf("Unsolicited response received on idle HTTP channel starting with %q; err=%v", "HTTP/1.1 200 sk-canary-0123456789\r\n", nil)
	l.Print("http: TLS handshake error from 127.0.0.1:5: EOF")
	want := "Unsolicited response received on idle HTTP channel\nhttp: TLS handshake error from 127.0.0.1:5: EOF\n"
	if out.String() != want || strings.Contains(out.String(), "canary") {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
