package checker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// chain computes every hash anew, from the written definition and not by the
// product's code.
func (r *run) chain(entries []ledger.Entry) {
	var prev ledger.Entry
	for _, e := range entries {
		r.hold(ChainWhole)
		switch {
		case e.Seq != prev.Seq+1:
			r.broke(ChainWhole, "", e.Seq, "the entry stands where %d should", prev.Seq+1)
		case e.Prev != prev.Hash:
			r.broke(ChainWhole, "", e.Seq, "the entry does not follow entry %d", prev.Seq)
		case e.Hash != hashOf(e):
			r.broke(ChainWhole, "", e.Seq, "the entry was changed after it was written")
		case e.Time.Before(prev.Time) && e.Kind != ledger.KindLowered:
			r.broke(ChainWhole, "", e.Seq, "the entry is of %s, older than the one before, of %s", stamp(e.Time), stamp(prev.Time))
		case (e.Kind == ledger.KindInit) != (e.Seq == 1):
			r.broke(ChainWhole, "", e.Seq, "the entry is of kind %s; a chain begins with init and holds no second one", e.Kind)
		}
		prev = e
	}
}

func hashOf(e ledger.Entry) string {
	text := ""
	for _, f := range []string{
		"setpoint.dev/ledger/v1", fmt.Sprint(e.Seq), e.Prev, e.Time.UTC().Format(time.RFC3339Nano),
		string(e.Kind), e.Service, e.Unique, string(e.Body),
	} {
		text += fmt.Sprintf("%d:%s\n", len(f), f)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// acknowledged looks for every position that somebody was told of.
func (r *run) acknowledged(entries []ledger.Entry) {
	have := make(map[ledger.Position]bool, len(entries))
	for _, e := range entries {
		have[ledger.Position{Seq: e.Seq, Hash: e.Hash}] = true
	}
	for _, p := range r.o.Acknowledged {
		r.hold(NothingLost)
		r.report.Acknowledged++
		if !have[p] {
			r.report.LostAcknowledged++
			r.broke(NothingLost, "", p.Seq, "entry %d with hash %.12s was acknowledged and is not in the ledger", p.Seq, p.Hash)
		}
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
