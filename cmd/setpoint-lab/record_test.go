package main

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWriteWholeWritesAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	text := func(w io.Writer) error {
		_, err := io.WriteString(w, "a month")
		return err
	}
	plain, zipped := filepath.Join(dir, "one.jsonl"), filepath.Join(dir, "two.jsonl.gz")
	for _, name := range []string{plain, zipped} {
		if err := writeWhole(name, text); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(plain); err != nil || string(got) != "a month" {
		t.Errorf("plain: %q, %v", got, err)
	}
	f, err := os.Open(zipped)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != "a month" {
		t.Errorf("compressed: %q, %v", got, err)
	}
	if !z.ModTime.IsZero() || z.Name != "" {
		t.Errorf("its head has the time %s and the name %q, which do not repeat", z.ModTime, z.Name)
	}
	broken := errors.New("broken")
	err = writeWhole(plain, func(w io.Writer) error { return errors.Join(text(w), text(w), broken) })
	if got, _ := os.ReadFile(plain); !errors.Is(err, broken) || string(got) != "a month" {
		t.Errorf("after %v the file holds %q", err, got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestEvalRecordRefuses(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	tests := map[string]struct {
		reason string
		flags  recordFlags
		ctx    context.Context
		want   string
	}{
		"Nowhere":  {"there is no file by default: a month takes minutes", recordFlags{days: 1}, t.Context(), "name the file to write with --out"},
		"NoFolder": {"before a minute is played", recordFlags{out: filepath.Join(dir, "no", "where"), days: 1}, t.Context(), "no such file"},
		"NoDays":   {"an empty past proves nothing", recordFlags{out: filepath.Join(dir, "none"), days: 0}, t.Context(), "want at least 1"},
		"Stopped":  {"half a month is no month", recordFlags{out: filepath.Join(dir, "half"), days: 1}, gone, "context canceled"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := tt.flags.run(tt.ctx, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", tt.reason, err, tt.want)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left are %v, %v", left, err)
			}
		})
	}
}
