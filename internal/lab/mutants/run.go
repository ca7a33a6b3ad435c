package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options are how a list is run.
type Options struct {
	// Root is the folder of the module.
	Root string
	// Parallel is how many run at a time; 2 when zero.
	Parallel int
	// Go is the command; "go" when empty.
	Go string
	// Progress is called after each mutant; nil: nobody watches.
	Progress func(done, all int, r Result)
}

// Run tries each mutant of a list by itself. Its error says that the list could
// not be run at all; what became of each mutant is in the table.
func Run(ctx context.Context, list []Mutant, o Options) (Table, error) {
	began := time.Now()
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return Table{}, err
	}
	if o.Go == "" {
		o.Go = "go"
	}
	if o.Parallel <= 0 {
		o.Parallel = 2
	}
	r := &runner{root: root, command: o.Go, sound: map[Catcher]*proof{}}
	t := Table{Items: make([]Result, len(list))}
	var mu sync.Mutex
	done := 0
	g := new(errgroup.Group)
	g.SetLimit(o.Parallel)
	for i, m := range list {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			res := r.try(ctx, m)
			mu.Lock()
			defer mu.Unlock()
			t.Items[i] = res
			if done++; o.Progress != nil && ctx.Err() == nil {
				o.Progress(done, len(list), res)
			}
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return Table{}, err
	}
	t.count(time.Since(began))
	return t, nil
}

// runner runs the catchers of one module.
type runner struct {
	root, command string

	mu    sync.Mutex
	sound map[Catcher]*proof
}

// proof is whether a catcher passes without any mutant, found out once.
type proof struct {
	once sync.Once
	err  error
}

func (r *runner) try(ctx context.Context, m Mutant) Result {
	began := time.Now()
	res := Result{Name: m.Name, Breaks: m.Breaks}
	err := r.hunt(ctx, m, &res)
	switch {
	case errors.Is(err, errStale):
		res.Verdict, res.Why = Stale, err.Error()
	case err != nil:
		res.Verdict, res.Why = Broken, err.Error()
	}
	res.Seconds = time.Since(began).Seconds()
	return res
}

// hunt runs the catchers until one fails. Its error says that the mutant proves
// nothing.
func (r *runner) hunt(ctx context.Context, m Mutant, res *Result) error {
	files, err := changed(r.root, m)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := writeOverlay(dir, files)
	if err != nil {
		return err
	}
	var passed []string
	for _, c := range m.Catchers {
		said, err := r.test(ctx, c, overlay)
		if err != nil {
			return err
		}
		switch said.end {
		case passes:
			passed = append(passed, c.String())
			continue
		case doesNotBuild:
			return fmt.Errorf("it does not compile:\n%s", said.text)
		case hangs:
			if !c.HangCatches {
				return fmt.Errorf("%s never ended", c)
			}
		}
		if err := r.passesAlone(ctx, c); err != nil {
			return err
		}
		res.Verdict, res.Package, res.Test = Caught, strings.TrimPrefix(c.Package, "./"), said.test
		return nil
	}
	res.Verdict, res.Why = Survived, "passed: "+strings.Join(passed, "; ")
	return nil
}

// Overlay writes the changed files of a mutant into a folder, and gives the file
// that go build -overlay takes.
func (m Mutant) Overlay(root, dir string) (string, error) {
	files, err := changed(root, m)
	if err != nil {
		return "", err
	}
	return writeOverlay(dir, files)
}

// writeOverlay writes changed files into a folder, and the file that tells the
// compiler where they are.
func writeOverlay(dir string, files map[string][]byte) (string, error) {
	replace := map[string]string{}
	var paths []string
	for path := range files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for i, path := range paths {
		to := filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(path)))
		if err := os.WriteFile(to, files[path], 0o600); err != nil {
			return "", err
		}
		replace[path] = to
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, raw, 0o600)
}

// passesAlone says what is wrong with a catcher that fails without any mutant:
// then its failure says nothing about one.
func (r *runner) passesAlone(ctx context.Context, c Catcher) error {
	r.mu.Lock()
	p := r.sound[c]
	if p == nil {
		p = &proof{}
		r.sound[c] = p
	}
	r.mu.Unlock()
	p.once.Do(func() {
		said, err := r.test(ctx, c, "")
		switch {
		case err != nil:
			p.err = err
		case said.end != passes:
			p.err = fmt.Errorf("%s fails without the mutant, too: %s\n%s", c, said.test, said.text)
		}
	})
	return p.err
}
