package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/lab/checker"
	"github.com/setpoint-dev/setpoint/internal/lab/crash/world"
	"github.com/setpoint-dev/setpoint/internal/lab/pager"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/sqlite"
)

// ledgerFiles are those of the store, by what follows the ledger's name.
var ledgerFiles = []string{"", "-wal", "-shm"}

// breaks makes the service fail again, so that there is a reason to act.
func (r *run) breaks() {
	r.Break()
	r.Source.Reset(time.Now().Add(-10 * time.Second))
}

// episode lets an agent run one episode to its end, and breaks the service
// again.
func (r *run) episode(ctx context.Context) {
	r.settle(ctx)
	r.breaks()
}

// refuses starts an agent that must end with exit code 1 and say why.
func (r *run) refuses(ctx context.Context, words ...string) {
	before := len(r.Log())
	agent, err := r.Start(world.Rig{})
	if err != nil {
		r.broke("%v", err)
		return
	}
	err = r.Until(ctx, agent, patience, func() bool { return agent.Ended() })
	if !agent.Ended() {
		r.broke("it started although it must not: %v", err)
		agent.Kill()
		return
	}
	r.refused(agent, before, words...)
}

// refused: an agent ended with exit code 1 and said why, after so many bytes of
// the log.
func (r *run) refused(agent *world.Agent, before int, words ...string) {
	r.said(string(r.Log()[before:]), words)
	if agent.ExitCode() != 1 {
		r.broke("it ended with exit code %d, want 1", agent.ExitCode())
	}
}

func (r *run) said(text string, words []string) {
	for _, w := range words {
		if !strings.Contains(text, w) {
			r.broke("it said %q, want %q in it", tailOf(text), w)
		}
	}
}

func tailOf(text string) string {
	text = strings.TrimSpace(text)
	return text[max(0, len(text)-300):]
}

// observes watches a running agent that cannot use its ledger: it sends
// nothing and a person is told.
func (r *run) observes(ctx context.Context, agent *world.Agent, why string) {
	r.quiet(ctx, watched, "although "+why)
	r.toldOf(ctx, agent, why)
}

// toldOf waits for a page about the ledger.
func (r *run) toldOf(ctx context.Context, agent *world.Agent, why string) {
	if err := r.Until(ctx, agent, world.EscalateWithin+3*time.Second, r.paged); err != nil {
		var got []string
		for _, p := range r.Pager.Pages() {
			got = append(got, p.Labels["reason"])
		}
		r.broke("no page about the ledger although %s, only %q: %v", why, got, err)
	}
}

// paged reports whether a person was told of a fault of the ledger.
func (r *run) paged() bool {
	return slices.ContainsFunc(r.Pager.Pages(), func(p pager.Page) bool { return strings.HasPrefix(p.Labels["reason"], "ledger") })
}

// holds starts an agent on a ledger that it must not use: either it does not
// start, with words, or it observes and a person is told.
func (r *run) holds(ctx context.Context, why string) {
	before := len(r.Log())
	agent, err := r.Start(world.Rig{})
	if err != nil {
		r.broke("%v", err)
		return
	}
	requests := len(r.Actuator.Journal())
	wait(ctx, watched)
	if n := len(r.Actuator.Journal()) - requests; n > 0 {
		r.broke("%d requests although %s", n, why)
	}
	if agent.Ended() {
		r.refused(agent, before, "ledger")
		return
	}
	r.toldOf(ctx, agent, why)
	if err := agent.Stop(patience); err != nil {
		r.broke("%v", err)
	}
}

// verifies reports whether `setpoint ledger verify` finds nothing.
func (r *run) verifies(ctx context.Context) bool {
	_, code, err := r.Command(ctx, "ledger", "verify")
	return err == nil && code == 0
}

// chain reads what is whole: the entries, which are verified, and the blobs
// that are what their digest says.
func (r *run) chain(ctx context.Context) (x ledger.Exported, err error) {
	reader, err := sqlite.OpenReader(r.Path(world.LedgerFile))
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	_, err = ledger.Walk(ctx, reader, ledger.Position{}, func(e ledger.Entry) error {
		x.Entries = append(x.Entries, e)
		return nil
	})
	if err != nil {
		return x, err
	}
	x.Blobs = map[string][]byte{}
	return x, reader.EachBlob(ctx, func(digest string, blob []byte) error {
		if ledger.BlobDigest(blob) == digest {
			x.Blobs[digest] = blob
		}
		return nil
	})
}

// judgeBy holds the journal against an export that was made before the ledger
// was damaged: whatever came later was never claimed.
func (r *run) judgeBy(exported ledger.Exported) Result {
	if err := r.Close(); err != nil {
		r.broke("the actuator's journal: %v", err)
	}
	if err := r.SavePages(); err != nil {
		r.broke("the pager's pages: %v", err)
	}
	r.result.Report = checker.Check(exported, r.Actuator.Journal(), limits(nil, r.skew))
	r.count()
	return r.result
}

// keepAside copies the ledger's files, and putBack writes them over what is
// there now. What was not there is removed.
func (r *run) keepAside() map[string][]byte {
	kept := map[string][]byte{}
	for _, f := range ledgerFiles {
		data, err := os.ReadFile(r.Path(world.LedgerFile + f))
		if err == nil {
			kept[f] = data
		}
	}
	return kept
}

func (r *run) putBack(kept map[string][]byte) {
	r.remove()
	for _, f := range ledgerFiles {
		if data, ok := kept[f]; ok && f != "-shm" {
			if err := os.WriteFile(r.Path(world.LedgerFile+f), data, 0o600); err != nil {
				r.broke("put an older copy back: %v", err)
			}
		}
	}
}

// remove deletes the ledger.
func (r *run) remove() {
	for _, f := range ledgerFiles {
		if err := os.Remove(r.Path(world.LedgerFile + f)); err != nil && !os.IsNotExist(err) {
			r.broke("remove the ledger: %v", err)
		}
	}
}

// onceEach: no key has two effects, whatever the ledger still knows of it.
func (r *run) onceEach() {
	var seen []string
	for _, rec := range r.Actuator.Effects() {
		if slices.Contains(seen, rec.Key) {
			r.broke("%s has two effects", rec.Key)
			r.result.Report.DoubleEffects++
		}
		seen = append(seen, rec.Key)
	}
}

// scenario is a case that makes its own world.
func scenario(name string, o world.Options, f func(ctx context.Context, r *run) Result) Case {
	return Case{Name: name, run: func(ctx context.Context, s *world.Slot) Result {
		w, err := s.New(ctx, o)
		if err != nil {
			return failed(fmt.Errorf("make a world: %w", err))
		}
		r := begin(w)
		r.result.Reached = true
		return f(ctx, r)
	}}
}
