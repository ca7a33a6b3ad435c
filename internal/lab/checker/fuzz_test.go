package checker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/setpoint-dev/setpoint/internal/lab/checker"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// source is an export as a store.
type source ledger.Exported

func (s source) Read(_ context.Context, after uint64, limit int) ([]ledger.Entry, error) {
	from := min(int(after), len(s.Entries))
	return s.Entries[from:min(from+limit, len(s.Entries))], nil
}

func (s source) EachBlob(_ context.Context, f func(string, []byte) error) error {
	for _, digest := range slices.Sorted(maps.Keys(s.Blobs)) {
		if err := f(digest, s.Blobs[digest]); err != nil {
			return err
		}
	}
	return nil
}

// written is a history as the files that hold it.
func written(t testing.TB, h *history) (export, journal, acks []byte) {
	t.Helper()
	var x, j, a bytes.Buffer
	if err := ledger.Export(context.Background(), source(h.export()), &x); err != nil {
		t.Fatal(err)
	}
	for _, r := range h.journal {
		if err := json.NewEncoder(&j).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range h.o.Acknowledged {
		if err := json.NewEncoder(&a).Encode(p); err != nil {
			t.Fatal(err)
		}
	}
	return x.Bytes(), j.Bytes(), a.Bytes()
}

// TestFilesSayTheSame: what was written and read is judged alike.
func TestFilesSayTheSame(t *testing.T) {
	h := good(t)
	export, journal, acks := written(t, h)
	x, err := ledger.ReadExport(bytes.NewReader(export))
	if err != nil {
		t.Fatal(err)
	}
	// The actuator died in a line; nobody was answered about it.
	recs, err := checker.ReadJournal(bytes.NewReader(append(journal, `{"key":"half`...)))
	if err != nil {
		t.Fatal(err)
	}
	if h.o.Acknowledged, err = checker.ReadAcks(bytes.NewReader(append(acks, `{"seq`...))); err != nil {
		t.Fatal(err)
	}
	r := checker.Check(x, recs, h.o)
	if want := h.check(); !r.Clean() || r.Requests != want.Requests || r.Effects != want.Effects || r.Acknowledged != len(x.Entries) {
		t.Errorf("%d requests, %d effects, %d acknowledged, %v", r.Requests, r.Effects, r.Acknowledged, r.Violations)
	}
}

func TestReadersRefuse(t *testing.T) {
	for text, read := range map[string]func([]byte) error{
		"{}\n":             acksOf,
		`{"seq":1}` + "\n": acksOf,
		"no JSON\n":        acksOf,
		"[]\n":             journalOf,
		"{\n":              journalOf,
	} {
		if err := read([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func acksOf(b []byte) error {
	_, err := checker.ReadAcks(bytes.NewReader(b))
	return err
}

func journalOf(b []byte) error {
	_, err := checker.ReadJournal(bytes.NewReader(b))
	return err
}

// FuzzCheck: whatever the files hold is judged or refused, never a panic. The
// entries are read without their chain, or almost nothing would get far.
func FuzzCheck(f *testing.F) {
	short := good(f)
	short.steps, short.journal, short.o.Acknowledged = short.steps[:12], short.journal[:1], short.o.Acknowledged[:2]
	export, journal, acks := written(f, short)
	f.Add(export, journal, acks)
	// Small seeds: one entry of each kind after those that it may follow.
	seen := map[ledger.Kind]bool{}
	for _, e := range good(f).export().Entries {
		line, err := json.Marshal(e)
		if err != nil {
			f.Fatal(err)
		}
		if !seen[e.Kind] {
			f.Add(append(line, '\n'), []byte(nil), []byte(nil))
		}
		seen[e.Kind] = true
	}
	f.Fuzz(func(_ *testing.T, ledgerFile, journalFile, ackFile []byte) {
		x, err := ledger.ReadExport(bytes.NewReader(ledgerFile))
		if err != nil {
			x = ledger.Exported{}
			for line := range bytes.Lines(ledgerFile) {
				var e ledger.Entry
				if json.Unmarshal(line, &e) == nil {
					x.Entries = append(x.Entries, e)
				}
			}
		}
		recs, _ := checker.ReadJournal(bytes.NewReader(journalFile))
		var o checker.Options
		o.Acknowledged, _ = checker.ReadAcks(bytes.NewReader(ackFile))
		r := checker.Check(x, recs, o)
		if len(r.Checked) != len(checker.Invariants()) {
			panic("an invariant is missing")
		}
	})
}
