package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
)

// judge judges single decisions. It is safe for concurrent use.
type judge struct {
	src Source
	o   Options

	mu       sync.Mutex
	policies map[string]func() loaded
}

func newJudge(src Source, o Options) *judge {
	own := func() loaded { return loaded{policy: o.With} }
	return &judge{src: src, o: o, policies: map[string]func() loaded{o.With.Revision(): own}}
}

func (j *judge) judge(ctx context.Context, e ledger.Entry) (Judged, error) {
	out := Judged{Entry: e.Seq, ID: ledger.DecisionID(e.Seq), Time: e.Time, Service: e.Service}
	body, err := ledger.Decode(e)
	if errors.Is(err, ledger.ErrUnknownKind) {
		return out.not(NotReplayable, "a newer version wrote it"), nil
	}
	if err != nil {
		return out, err
	}
	d, ok := body.(ledger.Decided)
	if !ok {
		return out, fmt.Errorf("%w: entry %d holds no decision", ledger.ErrCorrupt, e.Seq)
	}
	if out.Action = d.Proposal.Action; out.Action == "" {
		out.Action = string(d.Proposal.Kind)
	}
	if why := unruled(d); why != "" {
		return out.not(NotReplayable, why), nil
	}
	return j.again(ctx, out, d)
}

func (o Judged) not(s Status, why string) Judged {
	o.Status, o.Why = s, why
	return o
}

// unruled says why there is no ruling to make again; "" when there is one.
func unruled(d ledger.Decided) string {
	r := d.Decision.Ruling
	code, _, _ := strings.Cut(r.Fault, ":")
	switch {
	case d.Proposal.Kind != propose.KindAction:
		return fmt.Sprintf("there was nothing to rule on (%s)", d.Proposal.Kind)
	case d.Floors == "" && d.Decision.InputDigest == "":
		return "no input for policy could be made"
	case d.Floors == "":
		return "an older version wrote it, which kept no floors"
	case r.Revision == "":
		return "no policy was loaded"
	case code == gate.FaultTimeout || code == gate.FaultCancelled || code == gate.FaultPanic:
		return "the policy was stopped (" + code + ")"
	}
	return ""
}

// again is the record against its own policy, and then against the other one.
func (j *judge) again(ctx context.Context, out Judged, d ledger.Decided) (Judged, error) {
	r, unusable, err := j.recorded(ctx, d)
	if err != nil || unusable.why != "" {
		return out.not(unusable.status, unusable.why), err
	}
	ruling := r.policy.Evaluate(ctx, r.input)
	out.Old = r.floors.Outlook(ruling)
	out.New = out.Old
	if j.o.With.Revision() != ruling.Revision {
		out.New = r.floors.Outlook(j.o.With.Evaluate(ctx, r.input))
	}
	// An evaluation that was stopped says nothing of the policy.
	if err := ctx.Err(); err != nil {
		return out, err
	}
	why, err := differs(d.Decision, out.Old.Now)
	if err != nil || why != "" {
		out.Old, out.New = gate.Outlook{}, gate.Outlook{}
		return out.not(NotReproduced, why), err
	}
	out.Difference = gate.Compare(out.Old, out.New)
	return out, nil
}

// record is all that a decision was made of.
type record struct {
	policy Policy
	input  []byte
	floors gate.Floors
}

// unusable says why a record cannot be judged again; "" when it can.
type unusable struct {
	status Status
	why    string
}

func (j *judge) recorded(ctx context.Context, d ledger.Decided) (r record, _ unusable, err error) {
	var why string
	if r.input, why, err = j.blob(ctx, "input", d.Decision.InputDigest); err != nil || why != "" {
		return r, unusable{NotReproduced, why}, err
	}
	raw, why, err := j.blob(ctx, "floors", d.Floors)
	if err != nil || why != "" {
		return r, unusable{NotReproduced, why}, err
	}
	if !known(raw, &r.floors) {
		return r, unusable{NotReplayable, "this version cannot read its floors"}, nil
	}
	own := j.policy(ctx, d.Decision.Ruling.Revision)
	r.policy = own.policy
	return r, unusable{NotReproduced, own.why}, own.err
}

// known reads floors, and refuses those of which it would read half.
func known(raw []byte, into *gate.Floors) bool {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	return dec.Decode(into) == nil && into.Version == gate.FloorsVersion
}

// blob reads a part of a decision, and says why it cannot be used.
func (j *judge) blob(ctx context.Context, what, digest string) (raw []byte, why string, err error) {
	raw, err = j.src.Blob(ctx, digest)
	switch {
	case errors.Is(err, ledger.ErrNoBlob):
		return nil, fmt.Sprintf("its %s (blob %.12s) is missing", what, digest), nil
	case err != nil:
		return nil, "", err
	case ledger.BlobDigest(raw) != digest:
		return nil, fmt.Sprintf("its %s (blob %.12s) was changed after it was written", what, digest), nil
	}
	return raw, "", nil
}

// loaded is a recorded policy, or why there is none.
type loaded struct {
	policy Policy
	why    string
	err    error
}

// policy loads a recorded policy, once.
func (j *judge) policy(ctx context.Context, revision string) loaded {
	j.mu.Lock()
	load, ok := j.policies[revision]
	if !ok {
		load = sync.OnceValue(func() loaded { return j.load(ctx, revision) })
		j.policies[revision] = load
	}
	j.mu.Unlock()
	return load()
}

func (j *judge) load(ctx context.Context, revision string) loaded {
	raw, why, err := j.blob(ctx, "policy bundle", revision)
	if err != nil || why != "" {
		return loaded{why: why, err: err}
	}
	p, err := j.o.Load(raw)
	if err != nil {
		return loaded{why: fmt.Sprintf("its policy %.12s does not load with this version: %s", revision, err)}
	}
	return loaded{policy: p}
}
