package reload

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
)

// Still is how long a folder has to stay as it is before what is in it is
// taken for a bundle. Files that are copied one by one may compile, and pass
// their tests, before the last of them is there.
const Still = time.Second

// missing is how many times longer it takes where the folder lacks a file of
// what rules: a folder that is emptied and filled again compiles without the
// rules that are still to come, and without their tests.
const missing = 30

// Options are what New needs. Everything is required but where said.
type Options struct {
	// Open opens the folder anew for each look: it may be gone, or a link to
	// another one.
	Open func() (fs.FS, error)
	// Rules are what a bundle has to pass; the zero Rules are strict.
	Rules Rules
	// Interval is the time between two looks; 0: nothing is watched, as with the
	// built-in policy, and Reload alone looks.
	Interval time.Duration
	// Still is how long a folder has to stay as it is; Still when zero.
	Still time.Duration
	// Hints ask for a look before the next interval; nil: nobody does.
	Hints <-chan struct{}
	Now   func() time.Time
	// InForce is what rules at the start; the zero Bundle: nothing, and Fault is
	// why.
	InForce rego.Bundle
	Fault   string
	// Swap takes a bundle into force. Where it fails the last one stays, and the
	// same bundle is tried again at the next look. It must not call the Watcher.
	Swap func(ctx context.Context, l Loaded) error
	// Changed hears of each change of the fault, once. It must not call the
	// Watcher.
	Changed func(s State)
}

// State is how a folder and what is in force stand to each other.
type State struct {
	// InForce is the revision that rules; "" while none does.
	InForce string
	// Fault is why the folder is not what rules, in brief; nil while it is, or
	// while it is not yet known to be at fault.
	Fault *Fault
}

// Watcher keeps one folder loaded. It is safe for concurrent use.
type Watcher struct {
	o    Options
	load func(ctx context.Context, b rego.Bundle, r Rules) (Loaded, error)

	// mu makes one look of a time, so that no older bundle comes after a newer.
	mu    sync.Mutex
	state State
	// files are those of what rules.
	files []string
	// seen is the digest that another bundle has had since seenAt; "" without.
	seen   string
	seenAt time.Time
	// restless is since when the folder is neither readable nor still; zero
	// while it is.
	restless time.Time
	// refused is the digest that was found at fault, with the fault: a bundle is
	// compiled and tested once.
	refused      string
	refusedFault *Fault
	// ready is a bundle that Swap did not take.
	ready *Loaded
}

// New makes a watcher of a folder. It looks at nothing yet.
func New(o Options) *Watcher {
	if o.Still <= 0 {
		o.Still = Still
	}
	w := &Watcher{o: o, load: load, state: State{InForce: o.InForce.Revision()}, files: filesOf(o.InForce)}
	w.o.InForce = rego.Bundle{} // Not kept in memory for ever.
	if o.Fault != "" {
		w.state.Fault = newFault(errors.New(o.Fault), "", 0)
	}
	return w
}

// Run looks at the folder in every interval, and soon after a hint, until ctx
// ends.
func (w *Watcher) Run(ctx context.Context) {
	if w.o.Interval <= 0 {
		return
	}
	// The folder may have changed since it was read for the start.
	looked, again := time.Now(), w.soon()
	timer := time.NewTimer(again)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.o.Hints:
			// A folder that is written all the time must not be read all the time.
			if w.soon() < again {
				again = w.soon()
				timer.Reset(max(0, time.Until(looked.Add(again))))
			}
		case <-timer.C:
			again = w.look(ctx)
			looked = time.Now()
			timer.Reset(again)
		}
	}
}

// soon is when a folder is looked at again that does not rest.
func (w *Watcher) soon() time.Duration { return min(w.o.Still, w.o.Interval) }

// look reads the folder once and returns when to look again.
func (w *Watcher) look(ctx context.Context) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, err := w.read()
	if err != nil {
		return w.wait("", unreadable(err))
	}
	rev := b.Revision()
	switch {
	case rev == w.state.InForce:
		w.settled(nil)
		return w.o.Interval
	case rev == w.refused:
		w.settled(w.refusedFault)
		return w.o.Interval
	case rev != w.seen:
		w.seenAt = w.o.Now()
		return w.wait(rev, newFault(errors.New("the folder does not stay as it is long enough to be read"), "", 0))
	}
	if w.o.Now().Sub(w.seenAt) < w.still(b) {
		return w.soon()
	}
	w.take(ctx, b)
	return w.o.Interval
}

// still is how long the folder has to stay as it is with this in it.
func (w *Watcher) still(b rego.Bundle) time.Duration {
	there := filesOf(b)
	for _, name := range w.files {
		if !slices.Contains(there, name) {
			return missing * w.o.Still
		}
	}
	return w.o.Still
}

func filesOf(b rego.Bundle) []string {
	var names []string
	for _, f := range b.Files() {
		names = append(names, f.Path)
	}
	return names
}

func (w *Watcher) read() (rego.Bundle, error) {
	fsys, err := w.o.Open()
	if err != nil {
		return rego.Bundle{}, err
	}
	return rego.Read(fsys)
}

// wait looks again soon at a folder that is being written, or is away for a
// moment. Only what lasts is a fault, and the first such fault stays.
func (w *Watcher) wait(seen string, f *Fault) time.Duration {
	w.seen, w.ready = seen, nil
	now := w.o.Now()
	if w.restless.IsZero() || now.Before(w.restless) {
		w.restless = now
	}
	if now.Sub(w.restless) >= w.patience() && (w.state.Fault == nil || seen == "") {
		w.faulted(f)
	}
	return w.soon()
}

// patience is how long a folder may be neither readable nor still.
func (w *Watcher) patience() time.Duration {
	const looks = 5
	return max(2*w.o.Interval, looks*w.o.Still)
}

// take loads a bundle that held still, and hands it over.
func (w *Watcher) take(ctx context.Context, b rego.Bundle) {
	if w.ready == nil || w.ready.Policy.Revision() != b.Revision() {
		l, err := w.load(ctx, b, w.o.Rules)
		if err != nil {
			w.refuse(b.Revision(), err)
			return
		}
		w.ready = &l
	}
	if err := w.o.Swap(ctx, *w.ready); err != nil {
		if ctx.Err() != nil {
			return
		}
		w.faulted(newFault(fmt.Errorf("it loads, but cannot be put into force: %w", err), "", 0))
		return
	}
	w.took(b)
}

func (w *Watcher) refuse(rev string, err error) {
	var f *Fault
	if !errors.As(err, &f) {
		return // stopped: that says nothing of the bundle
	}
	w.refused, w.refusedFault = rev, f
	w.settled(f)
}

func (w *Watcher) took(b rego.Bundle) {
	w.state.InForce, w.files = b.Revision(), filesOf(b)
	w.refused, w.refusedFault = "", nil
	w.settled(nil)
}

// settled says what is known of the folder for sure; nil: it is what rules.
func (w *Watcher) settled(f *Fault) {
	w.seen, w.restless, w.ready = "", time.Time{}, nil
	w.faulted(f)
}

// faulted tells of another fault than before.
func (w *Watcher) faulted(f *Fault) {
	was := w.state.Fault
	w.state.Fault = f
	if same := was == nil && f == nil || was != nil && f != nil && was.Error() == f.Error(); !same {
		w.o.Changed(w.state)
	}
}

// Reload reads the folder at once, whatever was tried before, and hands over
// what is in it by swap. An error of swap is returned as it is: it is none of
// the folder.
func (w *Watcher) Reload(ctx context.Context, swap func(ctx context.Context, l Loaded) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	b, err := w.read()
	if err != nil {
		f := unreadable(err)
		w.wait("", f)
		return f
	}
	l, err := w.load(ctx, b, w.o.Rules)
	if err != nil {
		w.refuse(b.Revision(), err)
		return err
	}
	if err := swap(ctx, l); err != nil {
		return err
	}
	w.took(b)
	return nil
}
