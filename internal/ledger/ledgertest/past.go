package ledgertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// The part of the contract that a start, an export and the clocks rest on.

// entryOf is a draft of another kind than Gap.
func entryOf(n int) ledger.Draft {
	return ledger.Draft{Kind: ledger.KindThaw, Body: ledger.Thaw{ID: fmt.Sprint("f", n), By: "os:test", Reason: "looked"}}
}

func newest(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	h := head(all(t, s))
	is := func(kind ledger.Kind, want ...ledger.Entry) {
		t.Helper()
		e, ok, err := s.Newest(t.Context(), kind)
		if err != nil || ok != (len(want) == 1) {
			t.Fatalf("newest %s: %v, %v, want %d entries", kind, ok, err, len(want))
		}
		if ok {
			same(t, "newest "+string(kind), want, []ledger.Entry{e})
		}
	}
	is(ledger.KindInit, all(t, s)[0])
	is(ledger.KindGap)
	is("")
	is("weather")
	es := appended(t, s, h, Drafts(Gap("a"), entryOf(1), Gap("b"), Gap("c"), entryOf(2)))
	is(ledger.KindGap, es[3])
	is(ledger.KindThaw, es[4])
	var many []ledger.Draft
	for i := range 300 {
		many = append(many, entryOf(10+i))
	}
	more := appended(t, s, head(es), Drafts(many...))
	is(ledger.KindGap, es[3])
	is(ledger.KindThaw, more[len(more)-1])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Newest(ctx, ledger.KindGap); !errors.Is(err, context.Canceled) {
		t.Errorf("newest with a cancelled context gave %v", err)
	}
}

func dropped(t *testing.T, fresh Fresh) {
	open := fresh(t)
	s := open()
	defer func() { _ = s.Close() }()
	change := func(add []string, drop ...string) ledger.Draft {
		d := Gap("change")
		for _, b := range add {
			d.Blobs = append(d.Blobs, []byte(b))
		}
		for _, b := range drop {
			d.Drop = append(d.Drop, ledger.BlobDigest([]byte(b)))
		}
		return d
	}
	holds := func(want string) {
		t.Helper()
		for _, b := range []string{"one", "two", "three", "four"} {
			got, err := s.Blob(t.Context(), ledger.BlobDigest([]byte(b)))
			switch there := bytes.Contains([]byte(want), []byte(b)); {
			case there && (err != nil || string(got) != b):
				t.Errorf("blob %s came back as %q, %v", b, got, err)
			case !there && !errors.Is(err, ledger.ErrNoBlob):
				t.Errorf("blob %s gave %v, want %v", b, err, ledger.ErrNoBlob)
			}
		}
	}
	h := head(all(t, s))
	appended(t, s, h, Drafts(change([]string{"one", "two"}), change([]string{"one"})))
	holds("one two")
	appended(t, s, h, Drafts(change(nil, "one")))
	holds("two")
	appended(t, s, h, Drafts(change(nil, "one", "never there")))
	holds("two")
	appended(t, s, h, Drafts(change([]string{"three"}, "two")))
	holds("three")
	appended(t, s, h, Drafts(change([]string{"four", "one"}), change(nil, "four")))
	holds("one three")
	_, err := s.Append(t.Context(), h, Drafts(change(nil, "three"), ledger.Draft{Kind: "weather"}))
	if err == nil {
		t.Error("an unknown kind was taken")
	}
	holds("one three")
	want := all(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	holds("one three")
	same(t, "a dropped blob took an entry along", want, all(t, s))
}

// source is the store's reader of all blobs, which every store in this module
// has, perhaps below a wrapper.
func source(t *testing.T, s ledger.Store) ledger.Source {
	t.Helper()
	src, ok := s.(ledger.Source)
	if !ok {
		t.Skipf("%T is no source of an export; what it wraps is", s)
	}
	return src
}

func exported(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	src := source(t, s)
	h := head(all(t, s))
	for i := range 20 {
		d := Gap(fmt.Sprint("<", i, "> & ü"))
		d.Unique = fmt.Sprint("u", i)
		d.Blobs = [][]byte{fmt.Appendf(nil, "blob %d\x00\xff", i), bytes.Repeat([]byte{byte(i)}, 1000*i)}
		appended(t, s, h, Drafts(d))
	}
	d := Gap("drop")
	d.Drop = []string{ledger.BlobDigest([]byte("blob 3\x00\xff"))}
	appended(t, s, h, Drafts(d))
	last, n := "", 0
	err := src.EachBlob(t.Context(), func(digest string, blob []byte) error {
		if digest <= last || ledger.BlobDigest(blob) != digest {
			t.Errorf("blob %s of %d bytes comes after %s", digest, len(blob), last)
		}
		last, n = digest, n+1
		return nil
	})
	if err != nil || n != 39 {
		t.Errorf("%d blobs, %v, want 39", n, err)
	}
	stop := errors.New("enough")
	if err := src.EachBlob(t.Context(), func(string, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("a reader that stops got %v", err)
	}
	var out bytes.Buffer
	if err := ledger.Export(t.Context(), src, &out); err != nil {
		t.Fatal(err)
	}
	x, err := ledger.ReadExport(&out)
	if err != nil || len(x.Blobs) != n {
		t.Fatalf("read back %d blobs, %v, want %d", len(x.Blobs), err, n)
	}
	same(t, "read back", all(t, s), x.Entries)
	for digest, want := range x.Blobs {
		if got, err := s.Blob(t.Context(), digest); err != nil || !bytes.Equal(got, want) {
			t.Errorf("blob %s was exported as other bytes, %v", digest, err)
		}
	}
}

// checkpoints takes two, one on top of the other, and begins from the newest as
// a start does.
func checkpoints(t *testing.T, fresh Fresh) {
	open := fresh(t)
	s := open()
	state := ledger.NewState()
	fold := func(es []ledger.Entry) {
		t.Helper()
		for _, e := range es {
			if err := state.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	fold(all(t, s))
	for range 3 {
		fold(appended(t, s, state.Head, Drafts(Gap("a"), entryOf(int(state.Head.Seq)))))
		d, err := ledger.CheckpointDraft(state)
		if err != nil {
			t.Fatal(err)
		}
		fold(appended(t, s, state.Head, Drafts(d)))
	}
	fold(appended(t, s, state.Head, Drafts(Gap("after"))))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	defer func() { _ = s.Close() }()
	c, err := ledger.NewestCheckpoint(t.Context(), s)
	if err != nil || c.At.Seq != state.Head.Seq-2 {
		t.Fatalf("the newest checkpoint is of entry %d, %v, want %d", c.At.Seq, err, state.Head.Seq-2)
	}
	loaded, err := ledger.Load(t.Context(), s)
	if err != nil || loaded.Head != c.At {
		t.Fatalf("loaded entry %d, %v", loaded.Head.Seq, err)
	}
	if err := ledger.Audit(t.Context(), s, c); err != nil {
		t.Error(err)
	}
	for _, e := range page(t, s, loaded.Head.Seq, 1000) {
		if err := loaded.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if loaded.Head != state.Head || len(loaded.Thawed) != len(state.Thawed) {
		t.Errorf("a start comes to entry %d with %d thaws, want %d and %d", loaded.Head.Seq, len(loaded.Thawed), state.Head.Seq, len(state.Thawed))
	}
	kept := 0
	for _, digest := range state.Checkpoints {
		if _, err := s.Blob(t.Context(), digest); err == nil {
			kept++
		}
	}
	if kept != 2 {
		t.Errorf("%d checkpoints keep their bytes, want 2", kept)
	}
}

// clocked is a store that has a clock of its own.
type clocked interface {
	Clock(ctx context.Context) (time.Time, error)
}

func clock(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	c, ok := s.(clocked)
	if !ok {
		t.Skipf("%T has no clock", s)
	}
	h := head(all(t, s))
	for i := range 5 {
		before := now(t, c)
		e := appended(t, s, h, Drafts(Gap(fmt.Sprint(i))))
		after := now(t, c)
		// Entries keep microseconds.
		at := e[len(e)-1].Time
		if at.Before(before.Truncate(ledger.Resolution)) || after.Before(at) {
			t.Errorf("the clock says %s, an entry %s and the clock %s", before, at, after)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Clock(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the clock with a cancelled context gave %v", err)
	}
}

func now(t *testing.T, c clocked) time.Time {
	t.Helper()
	at, err := c.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// loweredTimes: an entry of that kind has a batch stamped with the present, as
// every batch is that no clock ran ahead of; how it goes back in time is the
// test of a store whose clock can be set.
func loweredTimes(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	d := ledger.Draft{Kind: ledger.KindLowered, Body: ledger.Lowered{By: "os:test", Reason: "NTP"}}
	es := appended(t, s, head(all(t, s)), Drafts(d, Gap("after")))
	if !es[0].Time.Equal(es[1].Time) {
		t.Errorf("one batch is stamped %s and %s", es[0].Time, es[1].Time)
	}
	if _, err := ledger.Fold(all(t, s)); err != nil {
		t.Error(err)
	}
}
