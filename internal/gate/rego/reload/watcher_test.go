package reload_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/reload"
)

const interval = 30 * time.Second

// policy is one that refuses a service of the name, with a test of it.
func policy(name string) map[string]string {
	return map[string]string{
		"gate.rego": `package setpoint.gate

# METADATA
# title: Nothing acts on it
# custom: {remedy: wait}
deny contains "refused" if input.service.name == data.refused
`,
		"gate_test.rego": `package setpoint.gate_test

import data.setpoint.gate

test_refused if "refused" in gate.deny with input as {"service": {"name": data.refused}}

test_other if not "refused" in gate.deny with input as {"service": {"name": "other"}}
`,
		"data.yaml": "refused: " + name + "\n",
	}
}

// with is a policy with one file changed; an empty text removes it.
func with(files map[string]string, name, text string) map[string]string {
	out := maps.Clone(files)
	if out[name] = text; text == "" {
		delete(out, name)
	}
	return out
}

func mapFS(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

func read(t *testing.T, files map[string]string) rego.Bundle {
	t.Helper()
	b, err := rego.Read(mapFS(files))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func revision(t *testing.T, files map[string]string) string { return read(t, files).Revision() }

// desk is a folder that people write to, and what the watcher says of it.
type desk struct {
	t  *testing.T
	w  *reload.Watcher
	mu sync.Mutex
	// files is the folder; gone and busy are a folder that is away, and one that
	// is written at each moment.
	files      map[string]string
	gone, busy bool
	writes     int
	// refuse is why the ledger does not take a policy.
	refuse error
	hints  chan struct{}
	// swaps are the revisions that went into force, faults what was told.
	swaps, faults []string
	tries         int
	loads         *int
}

func newDesk(t *testing.T, files map[string]string, change func(*reload.Options)) *desk {
	d := &desk{t: t, files: files, hints: make(chan struct{}, 1)}
	o := reload.Options{
		Open: d.open, Interval: interval, Hints: d.hints, Now: time.Now, InForce: read(t, files),
		Swap: d.swap, Changed: func(s reload.State) {
			text := ""
			if s.Fault != nil {
				text = s.Fault.Brief()
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			d.faults = append(d.faults, text)
		},
	}
	if change != nil {
		change(&o)
	}
	d.w = reload.New(o)
	d.loads = reload.CountLoads(d.w)
	return d
}

func (d *desk) open() (fs.FS, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.gone:
		return nil, fs.ErrNotExist
	case d.busy:
		return busy{d}, nil
	}
	return mapFS(d.files), nil
}

// busy is another folder at each moment.
type busy struct{ d *desk }

func (b busy) Open(name string) (fs.File, error) {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	b.d.writes++
	return mapFS(with(b.d.files, "data.yaml", fmt.Sprintf("refused: number%09d\n", b.d.writes))).Open(name)
}

func (d *desk) swap(_ context.Context, l reload.Loaded) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tries++
	if d.refuse != nil {
		return d.refuse
	}
	d.swaps = append(d.swaps, l.Policy.Revision())
	return nil
}

func (d *desk) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// run watches while f writes; it ends with the watcher stopped.
func (d *desk) run(f func()) {
	ctx, stop := context.WithCancel(d.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.w.Run(ctx)
	}()
	f()
	stop()
	<-done
}

// after lets time go by until everything that was to happen did.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (d *desk) want(reason string, swaps []string, faults ...string) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if diff := cmp.Diff(swaps, d.swaps); diff != "" {
		d.t.Errorf("%s: swaps (-want +got):\n%s", reason, diff)
	}
	got := append([]string{}, d.faults...)
	for i, w := range faults {
		if i < len(got) && w != "" && strings.Contains(got[i], w) {
			got[i] = w
		}
	}
	if diff := cmp.Diff(append([]string{}, faults...), got); diff != "" {
		d.t.Errorf("%s: faults (-want +got):\n%s", reason, diff)
	}
}

const tick = reload.Still / 10

// The digest decides: without a single event the interval is all that it costs.
func TestSwapWithoutEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, policy("a"), nil)
		next := policy("b")
		d.run(func() {
			after(2 * interval)
			d.want("nothing changed", nil)
			d.set(func() { d.files = next })
			after(interval + reload.Still + tick)
			d.want("one interval and the time in which it holds still", []string{revision(t, next)})
			after(3 * interval)
			d.want("it rules", []string{revision(t, next)})
		})
		if *d.loads != 1 {
			t.Errorf("compiled %d times, want once", *d.loads)
		}
	})
}

// A hint makes it soon, and cannot make it careless: a folder that changes is
// left alone until it holds still.
func TestHintsAreHeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, policy("a"), nil)
		d.run(func() {
			after(2 * reload.Still)
			for _, name := range []string{"b", "c", "d", "e"} {
				d.set(func() { d.files = policy(name) })
				d.hints <- struct{}{}
				after(reload.Still - tick)
			}
			d.want("it never held still", nil)
			after(2 * reload.Still)
			d.want("it holds still", []string{revision(t, policy("e"))})
		})
		if *d.loads != 1 {
			t.Errorf("compiled %d times, want once", *d.loads)
		}
	})
}

// What keeps the last good policy in force, how it is told, and that a bundle is
// tried once.
func TestFaultsKeepTheLastGoodPolicy(t *testing.T) {
	good := policy("a")
	cases := map[string]struct {
		reason string
		files  map[string]string
		fault  string
		loads  int
	}{
		"Syntax":      {"a file that ends early", with(good, "gate.rego", good["gate.rego"][:len(good["gate.rego"])-10]), "gate.rego:6: ", 1},
		"Typo":        {"a misspelt input path", with(good, "gate.rego", strings.Replace(good["gate.rego"], "input.service", "input.servce", 1)), "gate.rego:6: ", 1},
		"Test":        {"a test that fails", with(good, "gate_test.rego", good["gate_test.rego"]+"\ntest_wrong if false\n"), "gate_test.rego:9: test ", 1},
		"TestSyntax":  {"tests are half of the bundle", with(good, "gate_test.rego", "package setpoint.gate_test\n\ntest_"), "gate_test.rego:3: ", 1},
		"Blank":       {"a value that was not filled in", with(good, "data.yaml", "refused:\n"), "data.yaml:1: data.refused is null", 1},
		"DataMissing": {"a rule that would never fire", with(good, "data.yaml", ""), "gate.rego:6: ", 1},
		"Several":     {"the first and how many more", with(good, "gate.rego", good["gate.rego"]+"\nx := input.a\n\ny := input.b\n"), "; and 1 more", 1},
		"Empty":       {"an empty folder denies everything", map[string]string{}, "no .rego file", 1},
		"TooLong":     {"what cannot be read", with(good, "big.rego", "package big\n\nx := \""+strings.Repeat("x", rego.MaxBundle)+"\""), "the bundle has more than", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, good, nil)
				d.run(func() {
					d.set(func() { d.files = tc.files })
					after(10 * interval)
					d.want(tc.reason, nil, tc.fault)
					d.set(func() { d.files = good })
					after(interval + tick)
					d.want("the good one is back, which was never gone", nil, tc.fault, "")
					d.set(func() { d.files = tc.files })
					after(10 * interval)
				})
				if *d.loads != tc.loads {
					t.Errorf("%s: compiled %d times, want %d: one and the same bundle is at fault each time", tc.reason, *d.loads, tc.loads)
				}
			})
		})
	}
}

// A folder that is away for a moment, or written in just this one, is no fault;
// one that stays so is.
func TestFoldersThatDoNotRest(t *testing.T) {
	cases := map[string]struct {
		spoil func(d *desk, on bool)
		fault string
	}{
		"Gone": {func(d *desk, on bool) { d.gone = on }, "file does not exist"},
		"Busy": {func(d *desk, on bool) { d.busy = on }, "changed while it was read"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, policy("a"), nil)
				d.run(func() {
					after(interval - tick)
					d.set(func() { tc.spoil(d, true) })
					after(interval)
					d.want("not for long yet", nil)
					d.set(func() { tc.spoil(d, false) })
					after(5 * interval)
					d.want("it was over in time", nil)
					d.set(func() { tc.spoil(d, true) })
					after(5 * interval)
					d.want("it lasts", nil, tc.fault)
					d.set(func() { tc.spoil(d, false); d.files = policy("b") })
					after(interval)
					d.want("it is over, and brought another policy", []string{revision(t, policy("b"))}, tc.fault, "")
				})
			})
		})
	}
}

// Changes that never hold still are a fault although each is a good bundle.
func TestNeverStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, policy("a"), nil)
		d.run(func() {
			for i := range 200 {
				d.set(func() { d.files = policy(fmt.Sprint("n", i)) })
				after(reload.Still - tick)
			}
			d.want("nothing of it may rule", nil, "does not stay as it is")
		})
	})
}

// What the ledger does not take does not rule, and is tried again without being
// compiled again.
func TestUnrecordedDoesNotRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, policy("a"), nil)
		next := policy("b")
		d.run(func() {
			d.set(func() { d.files, d.refuse = next, errors.New("the disk is full") })
			after(5 * interval)
			d.want("it is not recorded", nil, "cannot be put into force: the disk is full")
			if d.tries < 4 || *d.loads != 1 {
				t.Errorf("%d tries with %d compilations, want one in each interval, with one", d.tries, *d.loads)
			}
			d.set(func() { d.refuse = nil })
			after(interval + tick)
			d.want("it is recorded", []string{revision(t, next)}, "cannot be put into force: the disk is full", "")
		})
	})
}

// Without a policy from the start the watcher goes on trying: mending the folder
// is all that somebody has to do.
func TestMendedAfterTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := with(policy("a"), "gate.rego", "package")
		_, err := reload.Load(t.Context(), mapFS(bad), reload.Rules{})
		if err == nil {
			t.Fatal("it loads")
		}
		d := newDesk(t, bad, func(o *reload.Options) { o.InForce, o.Fault = rego.Bundle{}, err.Error() })
		d.run(func() {
			after(5 * interval)
			d.want("what is known from the start is not told again", nil)
			d.set(func() { d.files = policy("a") })
			after(interval + reload.Still + tick)
			d.want("mended", []string{revision(t, policy("a"))}, "")
		})
	})
}

// A folder that was emptied is filled again slowly: it compiles without the rules
// that are still to come. Whoever means it waits a little longer.
func TestMissingFilesAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := with(policy("a"), "more.rego", "package more\n\nx := 1\n")
		half := with(whole, "more.rego", "")
		d := newDesk(t, whole, nil)
		d.run(func() {
			after(2 * reload.Still)
			for range 5 {
				d.set(func() { d.files = half })
				after(20 * reload.Still)
				d.set(func() { d.files = whole })
				after(20 * reload.Still)
			}
			d.want("what is half is never for long", nil)
			d.set(func() { d.files = half })
			after(interval + 32*reload.Still)
			d.want("it stays", []string{revision(t, half)})
		})
	})
}

// A person who asks for a reload is answered at once, and the watcher knows of
// it.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, policy("a"), nil)
		next, bad := policy("b"), with(policy("b"), "gate.rego", "package")
		d.run(func() {
			d.set(func() { d.files = bad })
			if err := d.w.Reload(t.Context(), d.swap); err == nil || !strings.Contains(err.Error(), "gate.rego:1") {
				t.Errorf("a bundle at fault: %v", err)
			}
			d.want("at fault", nil, "gate.rego:1: ")
			d.set(func() { d.files = next })
			documents := errors.New("slo.yaml:3: unknown key")
			err := d.w.Reload(t.Context(), func(context.Context, reload.Loaded) error { return documents })
			if !errors.Is(err, documents) {
				t.Errorf("the caller's own fault: %v", err)
			}
			d.want("a fault that is none of the folder", nil, "gate.rego:1: ")
			if err := d.w.Reload(t.Context(), d.swap); err != nil {
				t.Error(err)
			}
			d.want("good", []string{revision(t, next)}, "gate.rego:1: ", "")
			loads := *d.loads
			after(5 * interval)
			d.want("it rules", []string{revision(t, next)}, "gate.rego:1: ", "")
			if *d.loads != loads {
				t.Error("what rules was compiled again")
			}
		})
	})
}

// The built-in policy has no folder that could change.
func TestNothingToWatch(t *testing.T) {
	d := newDesk(t, policy("a"), func(o *reload.Options) { o.Interval = 0 })
	d.w.Run(t.Context()) // returns
	if err := d.w.Reload(t.Context(), d.swap); err != nil {
		t.Error(err)
	}
	d.want("a reload is one all the same", []string{revision(t, policy("a"))})
}
