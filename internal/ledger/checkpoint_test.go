package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// memory is a Past without a disk. Like a store it checks the digests of blobs.
type memory struct {
	entries []ledger.Entry
	blobs   map[string][]byte
	// newest stands for the newest of any kind, where a chain holds checkpoints
	// that were made up.
	newest *ledger.Entry
	// failing is the error of every read of a blob.
	failing error
}

func (m *memory) Read(_ context.Context, after uint64, limit int) ([]ledger.Entry, error) {
	from := min(after, uint64(len(m.entries)))
	return m.entries[from:min(from+uint64(limit), uint64(len(m.entries)))], nil
}

func (m *memory) Newest(_ context.Context, kind ledger.Kind) (ledger.Entry, bool, error) {
	if m.newest != nil {
		return *m.newest, true, nil
	}
	for i := len(m.entries) - 1; i >= 0; i-- {
		if m.entries[i].Kind == kind {
			return m.entries[i], true, nil
		}
	}
	return ledger.Entry{}, false, nil
}

func (m *memory) Blob(_ context.Context, digest string) ([]byte, error) {
	b, ok := m.blobs[digest]
	switch {
	case m.failing != nil:
		return nil, m.failing
	case !ok:
		return nil, ledger.ErrNoBlob
	case ledger.BlobDigest(b) != digest:
		return nil, ledger.ErrCorrupt
	}
	return b, nil
}

// keepBlobs does with a draft's blobs what a store does.
func (m *memory) keepBlobs(d ledger.Draft) {
	if m.blobs == nil {
		m.blobs = map[string][]byte{}
	}
	for _, b := range d.Blobs {
		m.blobs[ledger.BlobDigest(b)] = b
	}
	for _, digest := range d.Drop {
		delete(m.blobs, digest)
	}
}

func text(t interface{ Fatal(...any) }, s *ledger.State) string {
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestCheckpointOfAnyChain: what goes on from a checkpoint is what goes on from
// the first entry, after every later entry, whatever is in the chain.
func TestCheckpointOfAnyChain(t *testing.T) {
	checks(t, "60")
	rapid.Check(t, func(rt *rapid.T) {
		m := &memory{entries: drawChain(rt)}
		straight := folded(rt, m.entries)
		d, err := ledger.CheckpointDraft(straight)
		if err != nil {
			rt.Fatal(err)
		}
		m.keepBlobs(d)
		e, err := ledger.Link(straight.Head, straight.Time, d)
		if err != nil {
			rt.Fatal(err)
		}
		m.newest = &e
		m.entries = drawOn(rt, append(m.entries, e))
		restored, err := ledger.Load(context.Background(), m)
		if err != nil || restored.Head != straight.Head {
			rt.Fatalf("the checkpoint gives entry %d, %v, want %d", restored.Head.Seq, err, straight.Head.Seq)
		}
		kept, before := restored.Clone(), text(rt, straight)
		for _, e := range m.entries[straight.Head.Seq:] {
			for _, s := range []*ledger.State{straight, restored} {
				if err := s.Apply(e); err != nil {
					rt.Fatal(err)
				}
			}
			if want, got := text(rt, straight), text(rt, restored); want != got {
				rt.Fatalf("after entry %d:\n%s\nwant\n%s", e.Seq, got, want)
			}
		}
		if text(rt, kept) != before {
			rt.Fatal("a clone of what was restored was changed by what came later")
		}
		c, err := ledger.NewestCheckpoint(context.Background(), m)
		if err != nil {
			rt.Fatal(err)
		}
		if err := ledger.Audit(context.Background(), m, c); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestCheckpointsOfALongLife takes one checkpoint after the other of a chain in
// which much was forgotten, each on top of the state of the one before.
func TestCheckpointsOfALongLife(t *testing.T) {
	l := newLife(t, 3, ledger.NewState(), true)
	m := &memory{}
	ran := rand.New(rand.NewPCG(3, 3))
	for next := 200; next < 3000; next += 200 + ran.IntN(200) {
		for len(l.entries) < next {
			l.step()
		}
		d, err := ledger.CheckpointDraft(l.state)
		if err != nil {
			t.Fatal(err)
		}
		m.keepBlobs(d)
		l.add(d)
		if n := len(m.blobs); n > 2 {
			t.Fatalf("%d checkpoints keep their bytes", n)
		}
		for range 20 {
			l.step()
		}
		m.entries = l.entries
		restored, err := ledger.Load(t.Context(), m)
		if err != nil || restored.Head.Seq == 0 {
			t.Fatalf("load: %v, entry %d", err, restored.Head.Seq)
		}
		for _, e := range m.entries[restored.Head.Seq:] {
			if err := restored.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		if text(t, restored) != text(t, l.state) {
			t.Fatalf("at entry %d the restored state differs", l.state.Head.Seq)
		}
		// What is appended next is appended to the restored one, as after a start.
		l.state = restored
	}
	if l.state.CheckpointDue() || l.state.Forgotten == 0 && len(l.state.Charged) == 0 {
		t.Errorf("due %v after %d entries; nothing was forgotten", l.state.CheckpointDue(), l.state.Head.Seq-l.state.CheckpointAt)
	}
}

// checkpointed is a small chain with a checkpoint in it, of which change may
// change anything before it is linked.
func checkpointed(t *testing.T, change func(*ledger.Checkpoint, *memory, *ledger.State)) *memory {
	t.Helper()
	ch := everyKind(t)
	d, err := ledger.CheckpointDraft(ch.state)
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{}
	m.keepBlobs(d)
	body := d.Body.(ledger.Checkpoint)
	change(&body, m, ch.state)
	d.Body = body
	ch.add(at(40, d), at(41, gap()))
	m.entries = ch.entries
	return m
}

// rewritten is a checkpoint whose bytes were changed, with the digest of what
// they are now.
func rewritten(old, fresh string) func(*ledger.Checkpoint, *memory, *ledger.State) {
	return func(c *ledger.Checkpoint, m *memory, _ *ledger.State) {
		raw := bytes.Replace(m.blobs[c.State], []byte(old), []byte(fresh), 1)
		delete(m.blobs, c.State)
		c.State = ledger.BlobDigest(raw)
		m.blobs[c.State] = raw
	}
}

func TestLoad(t *testing.T) {
	fails := errors.New("the disk failed")
	tests := map[string]struct {
		reason      string
		change      func(*ledger.Checkpoint, *memory, *ledger.State)
		empty       bool
		load, audit error
	}{
		"good":            {"it is what the chain gives", func(*ledger.Checkpoint, *memory, *ledger.State) {}, false, nil, nil},
		"another version": {"it only costs time", rewritten(`{"fold":`, `{"fold":9`), true, nil, nil},
		"no bytes":        {"it only costs time", func(_ *ledger.Checkpoint, m *memory, _ *ledger.State) { m.blobs = nil }, true, nil, nil},
		"unreadable":      {"a disk that fails is no lie", func(_ *ledger.Checkpoint, m *memory, _ *ledger.State) { m.failing = fails }, false, fails, fails},
		"wrong hash":      {"of another chain", func(c *ledger.Checkpoint, _ *memory, _ *ledger.State) { c.At.Hash = c.State }, false, ledger.ErrCorrupt, ledger.ErrCorrupt},
		"wrong entry":     {"of another entry", func(c *ledger.Checkpoint, _ *memory, _ *ledger.State) { c.At.Seq-- }, false, ledger.ErrCorrupt, ledger.ErrCorrupt},
		"of later":        {"of what comes after it", func(c *ledger.Checkpoint, _ *memory, _ *ledger.State) { c.At.Seq += 9 }, false, ledger.ErrCorrupt, ledger.ErrCorrupt},
		"earlier": {"of an entry that is there, with the state of a later one", func(c *ledger.Checkpoint, _ *memory, _ *ledger.State) {
			c.At = everyKind(t).entries[3].Position()
		}, false, ledger.ErrCorrupt, ledger.ErrCorrupt},
		"changed bytes": {"a byte flipped", func(c *ledger.Checkpoint, m *memory, _ *ledger.State) {
			b := bytes.Clone(m.blobs[c.State])
			b[len(b)/2] ^= 1
			m.blobs[c.State] = b
		}, false, ledger.ErrCorrupt, ledger.ErrCorrupt},
		"no JSON":  {"bytes that are none", rewritten(`{`, `[`), false, ledger.ErrCorrupt, ledger.ErrCorrupt},
		"no state": {"bytes without a state", rewritten(`"state":{`, `"state":null,"x":{`), false, ledger.ErrCorrupt, ledger.ErrCorrupt},
		"hollow":   {"a state without a map", rewritten(`"Services":{`, `"Services":null,"x":{`), false, ledger.ErrCorrupt, ledger.ErrCorrupt},
		"a refund": {"a charge was edited", rewritten(`"Cost":1,`, `"Cost":0,`), false, nil, ledger.ErrCorrupt},
		"a thaw": {"a lock was edited", func(c *ledger.Checkpoint, m *memory, s *ledger.State) {
			raw, err := json.Marshal(s.Services["checkout"].Spent)
			if err != nil {
				t.Fatal(err)
			}
			rewritten(`"Spent":`+string(raw), `"Spent":{"Start":0,"Length":0}`)(c, m, s)
		}, false, nil, ledger.ErrCorrupt},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := checkpointed(t, tt.change)
			s, err := ledger.Load(t.Context(), m)
			if !errors.Is(err, tt.load) || err != nil && strings.Contains(err.Error(), "%!") {
				t.Fatalf("%s: load gave %v, want %v", tt.reason, err, tt.load)
			}
			if err == nil && (s.Head.Seq == 0) != tt.empty {
				t.Errorf("%s: loaded the state at entry %d, empty %v", tt.reason, s.Head.Seq, tt.empty)
			}
			e, _, _ := m.Newest(t.Context(), ledger.KindCheckpoint)
			body, err := ledger.Decode(e)
			if err != nil {
				t.Fatal(err)
			}
			if err := ledger.Audit(t.Context(), m, body.(ledger.Checkpoint)); !errors.Is(err, tt.audit) {
				t.Errorf("%s: audit gave %v, want %v", tt.reason, err, tt.audit)
			}
		})
	}
}

// TestAuditReadsEveryEntry: a changed entry before the checkpoint is found.
func TestAuditReadsEveryEntry(t *testing.T) {
	m := checkpointed(t, func(*ledger.Checkpoint, *memory, *ledger.State) {})
	c, err := ledger.NewestCheckpoint(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	whole := m.entries
	for i := range c.At.Seq {
		m.entries = append([]ledger.Entry(nil), whole...)
		m.entries[i].Body = append(json.RawMessage(nil), m.entries[i].Body...)
		m.entries[i].Body[len(m.entries[i].Body)-2] ^= 1
		if err := ledger.Audit(t.Context(), m, c); !errors.Is(err, ledger.ErrCorrupt) {
			t.Errorf("entry %d was changed: %v", i+1, err)
		}
	}
}

func TestCheckpointDraftRefuses(t *testing.T) {
	if _, err := ledger.CheckpointDraft(ledger.NewState()); err == nil {
		t.Error("a checkpoint of nothing")
	}
	h := ledger.NewHistory()
	for _, e := range everyKind(t).entries {
		if err := h.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ledger.CheckpointDraft(h); err == nil {
		t.Error("a checkpoint of a state that forgets nothing, which a start could not go on with")
	}
}

// goldenState is the digest of the state of two fixed chains.
const goldenState = "ac6624f13f73f0e4caf4bf468e330950c601b1342a2598a39af787e936a5a40d"

// TestGoldenState: a checkpoint that an older version wrote must not be read as
// one of this version, when the two do not fold alike.
func TestGoldenState(t *testing.T) {
	l := newLife(t, 11, ledger.NewState(), false)
	for l.state.Head.Seq < 3000 {
		l.step()
	}
	got := ledger.BlobDigest([]byte(text(t, everyKind(t).state) + text(t, l.state)))
	if got != goldenState {
		t.Errorf("folding gives another state than before: raise foldVersion in checkpoint.go, then set this constant to %q", got)
	}
}

// TestForgottenFutureKey: what a clock that ran ahead claimed is claimed when
// its window comes.
func TestForgottenFutureKey(t *testing.T) {
	const c = "checkout"
	ch := newChain(t, at(ahead, claim(c, claimOf(keyAt(c, ahead)))), at(ahead, void(c, keyAt(c, ahead))), at(10, lowered("", "")), at(10, lowered(c, windowAt(10))))
	for i := range 100 {
		k := keyAt(c, 20+10*i)
		ch.add(at(20+10*i, claim(c, claimOf(k))), at(20+10*i, void(c, k)))
	}
	ch.noSkips()
	if !ch.state.KeyClaimed(c, gate.WindowAt(minute(ahead), 600e9)) {
		t.Error("the key of the future is free again")
	}
	if n := len(ch.state.Effects); n > 70 {
		t.Error(fmt.Sprint(n, " effects are kept"))
	}
}
