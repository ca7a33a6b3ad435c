package ledgertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

func blobs(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	h := head(all(t, s))
	with := func(bs ...[]byte) ledger.Draft { d := Gap("blobs"); d.Blobs = bs; return d }
	one, two, none := []byte("one\x00\xff"), bytes.Repeat([]byte("two"), 1<<16), []byte{}
	appended(t, s, h, Drafts(with(one, two, one), with(one, none)))
	appended(t, s, h, Drafts(with(two)))
	for _, want := range [][]byte{one, two, none} {
		got, err := s.Blob(t.Context(), ledger.BlobDigest(want))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("blob of %d bytes came back as %d bytes, %v", len(want), len(got), err)
		}
	}
	lostBlob := []byte("of an entry that was refused")
	_, _ = s.Append(t.Context(), h, Drafts(with(lostBlob), ledger.Draft{Kind: "weather"}))
	for _, digest := range []string{ledger.BlobDigest(lostBlob), "", "x"} {
		if _, err := s.Blob(t.Context(), digest); !errors.Is(err, ledger.ErrNoBlob) {
			t.Errorf("blob %q gave %v, want %v", digest, err, ledger.ErrNoBlob)
		}
	}
}

func pages(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	var ds []ledger.Draft
	for i := range 9 {
		ds = append(ds, Gap(fmt.Sprint(i)))
	}
	appended(t, s, head(all(t, s)), Drafts(ds...))
	want := all(t, s)
	for limit := 1; limit <= 11; limit++ {
		for after := range 12 {
			got := page(t, s, uint64(after), limit)
			from := min(after, len(want))
			rest := want[from:min(from+limit, len(want))]
			if len(got) != len(rest) {
				t.Fatalf("read %d after %d gave %d entries, want %d", limit, after, len(got), len(rest))
			}
			for i := range rest {
				same(t, "page", rest[i:i+1], got[i:i+1])
			}
		}
	}
	if got := page(t, s, 0, 0); len(got) != 0 {
		t.Errorf("read of none gave %d entries", len(got))
	}
}

func cancelled(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	before := all(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	// In the plan, as when a pass is stopped while it decides.
	_, err := s.Append(ctx, head(before), func([]ledger.Entry) ([]ledger.Draft, error) {
		cancel()
		return []ledger.Draft{Gap("a")}, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("append cancelled in its plan gave %v", err)
	}
	if _, err := s.Append(ctx, head(before), Drafts(Gap("b"))); !errors.Is(err, context.Canceled) {
		t.Errorf("append with a cancelled context gave %v", err)
	}
	if _, err := s.Read(ctx, 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("read with a cancelled context gave %v", err)
	}
	same(t, "ledger", before, all(t, s))
	appended(t, s, head(before), Drafts(Gap("after")))
}

// concurrent counts in the chain itself: every append adds one to what it saw,
// so a lost or doubled view shows as a wrong number.
func concurrent(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	start := head(all(t, s))
	const appenders, rounds = 8, 10
	var wg sync.WaitGroup
	for range appenders {
		wg.Go(func() {
			for range rounds {
				_, err := s.Append(t.Context(), start, func(since []ledger.Entry) ([]ledger.Draft, error) {
					return []ledger.Draft{Gap(fmt.Sprint(len(since)))}, nil
				})
				if err != nil {
					t.Error(err)
				}
				if _, err := s.Read(t.Context(), 0, 5); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := all(t, s)[1:]
	if len(got) != appenders*rounds {
		t.Fatalf("%d entries, want %d", len(got), appenders*rounds)
	}
	for i, e := range got {
		if want := fmt.Sprintf(`{"why":"%d"}`, i); string(e.Body) != want {
			t.Fatalf("entry %d holds %s, want %s", e.Seq, e.Body, want)
		}
	}
}

func reopen(t *testing.T, fresh Fresh) {
	open := fresh(t)
	var want []ledger.Entry
	blob := []byte("kept")
	for i := range 4 {
		s := open()
		es := all(t, s)
		if i > 0 {
			same(t, "after reopening", want, es)
		}
		d := Gap(fmt.Sprint(i))
		d.Blobs = [][]byte{blob}
		want = append(es, appended(t, s, head(es), Drafts(d))...)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := open()
	same(t, "at the end", want, all(t, s))
	if got, err := s.Blob(t.Context(), ledger.BlobDigest(blob)); err != nil || !bytes.Equal(got, blob) {
		t.Errorf("blob came back as %q, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func closed(t *testing.T, fresh Fresh) {
	s := fresh(t)()
	h := head(all(t, s))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := s.Append(t.Context(), h, Drafts(Gap("a"))); err == nil {
		t.Error("a closed store took an entry")
	}
	if _, err := s.Read(t.Context(), 0, 1); err == nil {
		t.Error("a closed store was read")
	}
}

func times(t *testing.T, fresh Fresh) {
	s := opened(t, fresh)
	for i := range 5 {
		appended(t, s, head(all(t, s)), Drafts(Gap(fmt.Sprint(i))))
	}
	es := all(t, s)
	for i, e := range es {
		if e.Time.IsZero() || !e.Time.Equal(e.Time.Truncate(ledger.Resolution)) {
			t.Errorf("entry %d has time %s", e.Seq, e.Time)
		}
		if i > 0 && e.Time.Before(es[i-1].Time) {
			t.Errorf("entry %d is older than the one before", e.Seq)
		}
	}
}

// reference is a store without a disk: a list of entries and a set of names.
type reference struct {
	entries []ledger.Entry
	names   map[string]bool
	blobs   map[string]string
}

// add appends drafts as a store must: all of them, or none and ErrExists.
func (r *reference) add(ds []ledger.Draft) error {
	names := map[string]bool{}
	for _, d := range ds {
		if d.Unique != "" && (r.names[d.Unique] || names[d.Unique]) {
			return ledger.ErrExists
		}
		names[d.Unique] = true
	}
	for _, d := range ds {
		r.names[d.Unique] = true
		for _, b := range d.Blobs {
			r.blobs[ledger.BlobDigest(b)] = string(b)
		}
		for _, digest := range d.Drop {
			delete(r.blobs, digest)
		}
	}
	return nil
}

// smallBlob is one of few, so that they are added, dropped and added again.
func smallBlob() *rapid.Generator[[]byte] {
	return rapid.SampledFrom([][]byte{{}, {0}, {1}, {0xff, 0}, []byte("abc")})
}

func drawDraft(rt *rapid.T) ledger.Draft {
	d := Gap(rapid.StringN(0, 8, 24).Draw(rt, "why"))
	d.Service = rapid.SampledFrom([]string{"", "checkout"}).Draw(rt, "service")
	d.Unique = rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"}).Draw(rt, "unique")
	if rapid.Bool().Draw(rt, "other kind") {
		d.Kind, d.Body = ledger.KindThaw, ledger.Thaw{ID: "f", By: "os:test"}
	}
	d.Blobs = rapid.SliceOfN(smallBlob(), 0, 2).Draw(rt, "blobs")
	for _, b := range rapid.SliceOfN(smallBlob(), 0, 2).Draw(rt, "drop") {
		d.Drop = append(d.Drop, ledger.BlobDigest(b))
	}
	return d
}

// model runs random operations on a store and on a reference.
func model(t *testing.T, fresh Fresh) {
	rapid.Check(t, func(rt *rapid.T) {
		open := fresh(t)
		s := open()
		defer func() { _ = s.Close() }()
		first, err := readAll(s)
		if err != nil {
			rt.Fatal(err)
		}
		ref := &reference{entries: first, names: map[string]bool{}, blobs: map[string]string{}}
		rt.Repeat(map[string]func(*rapid.T){
			"append": func(rt *rapid.T) { modelAppend(rt, s, ref) },
			"reopen": func(rt *rapid.T) {
				if err := s.Close(); err != nil {
					rt.Fatal(err)
				}
				s = open()
			},
			"": func(rt *rapid.T) { modelCheck(rt, s, ref) },
		})
	})
}

func modelAppend(rt *rapid.T, s ledger.Store, ref *reference) {
	ds := rapid.SliceOfN(rapid.Custom(drawDraft), 0, 3).Draw(rt, "drafts")
	at := rapid.IntRange(0, len(ref.entries)).Draw(rt, "after")
	var after ledger.Position
	if at > 0 {
		after = ref.entries[at-1].Position()
	}
	saw := -1
	got, err := s.Append(context.Background(), after, func(since []ledger.Entry) ([]ledger.Draft, error) {
		saw = len(since)
		return ds, nil
	})
	if want := len(ref.entries) - at; saw != want {
		rt.Fatalf("plan saw %d entries, want %d", saw, want)
	}
	wantErr := ref.add(ds)
	if !errors.Is(err, wantErr) || (err != nil) != (wantErr != nil) {
		rt.Fatalf("append gave %v, want %v", err, wantErr)
	}
	if err != nil {
		return
	}
	if want := len(ref.entries) - at + len(ds); len(got) != want {
		rt.Fatalf("append gave %d entries, want %d", len(got), want)
	}
	fresh := got[len(got)-len(ds):]
	for i, e := range fresh {
		if e.Kind != ds[i].Kind || e.Service != ds[i].Service || e.Unique != ds[i].Unique {
			rt.Fatalf("entry %+v, want the draft %+v", e, ds[i])
		}
	}
	ref.entries = append(ref.entries, fresh...)
}

func modelCheck(rt *rapid.T, s ledger.Store, ref *reference) {
	got, err := readAll(s)
	if err != nil {
		rt.Fatal(err)
	}
	if len(got) != len(ref.entries) {
		rt.Fatalf("%d entries, want %d", len(got), len(ref.entries))
	}
	var prev ledger.Position
	for i, e := range got {
		if err := ledger.Verify(prev, e); err != nil {
			rt.Fatal(err)
		}
		if prev = e.Position(); prev != ref.entries[i].Position() {
			rt.Fatalf("entry %d differs from what append gave", e.Seq)
		}
	}
	modelNewest(rt, s, ref)
	for digest, want := range ref.blobs {
		if b, err := s.Blob(context.Background(), digest); err != nil || string(b) != want {
			rt.Fatalf("blob %s came back as %q, %v, want %q", digest, b, err, want)
		}
	}
	src, ok := s.(ledger.Source)
	if !ok {
		return
	}
	modelBlobs(rt, src, ref)
}

func modelBlobs(rt *rapid.T, src ledger.Source, ref *reference) {
	var got []string
	err := src.EachBlob(context.Background(), func(digest string, blob []byte) error {
		got = append(got, digest)
		if want, ok := ref.blobs[digest]; !ok || want != string(blob) {
			rt.Fatalf("blob %s is %q, want %q, there %v", digest, blob, want, ok)
		}
		return nil
	})
	if err != nil || !slices.Equal(got, slices.Sorted(maps.Keys(ref.blobs))) {
		rt.Fatalf("blobs %v, %v, want those of %v in order", got, err, ref.blobs)
	}
}

func modelNewest(rt *rapid.T, s ledger.Store, ref *reference) {
	for _, kind := range []ledger.Kind{ledger.KindInit, ledger.KindGap, ledger.KindThaw, ledger.KindAck} {
		var want ledger.Entry
		for _, e := range ref.entries {
			if e.Kind == kind {
				want = e
			}
		}
		got, ok, err := s.Newest(context.Background(), kind)
		if err != nil || ok != (want.Seq > 0) || got.Position() != want.Position() {
			rt.Fatalf("the newest %s is entry %d, %v, %v, want %d", kind, got.Seq, ok, err, want.Seq)
		}
	}
}
