package mutants

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// end is how a run of go test ended.
type end int

const (
	passes end = iota
	fails
	hangs
	doesNotBuild
)

// said is what a run of go test said.
type said struct {
	end end
	// test is the first one that failed, with its subtest.
	test string
	// passed: at least one test was not skipped.
	passed bool
	// text is the end of what was printed.
	text string
}

// event is a line of go test -json.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	FailedBuild string
}

const defaultTimeout = 2 * time.Minute

// test runs a catcher; with an overlay, on the changed files. Without one the
// answer may come from go's cache. Its error says that go could not be asked, or
// that its answer means nothing.
func (r *runner) test(ctx context.Context, c Catcher, overlay string) (said, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	args := []string{"test", "-json", "-vet=off", "-failfast", "-p=1", "-run", c.Run, "-timeout", timeout.String()}
	if c.Short {
		args = append(args, "-short")
	}
	if overlay != "" {
		args = append(args, "-count=1", "-overlay", overlay)
	}
	// The tests have their own limit; this one is for a compiler that hangs.
	ctx, cancel := context.WithTimeout(ctx, timeout+5*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	runErr := r.run(ctx, append(args, c.Package), &out, &errs)
	var exited *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return said{}, fmt.Errorf("%s: %w", c, ctx.Err())
	case runErr != nil && !errors.As(runErr, &exited):
		return said{}, fmt.Errorf("%s: %w", c, runErr)
	}
	s, err := read(&out)
	if err != nil {
		return said{}, fmt.Errorf("%s: %w", c, err)
	}
	return s, s.meant(c, runErr, errs.String())
}

// run runs go, with everything that it starts in one process group, which is
// gone when run returns. It is interrupted first, so that go cleans up.
func (r *runner) run(ctx context.Context, args []string, out, errs io.Writer) error {
	cmd := exec.CommandContext(ctx, r.command, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		// Mostly nothing is left of it.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return err
}

// meant says why an answer means nothing: nothing was run, or nothing says what
// failed.
func (s said) meant(c Catcher, failed error, errs string) error {
	switch {
	case failed == nil && !s.passed:
		return fmt.Errorf("%s: no test has that name, or all were skipped: %s", c, s.text)
	case failed != nil && s.end == passes:
		return fmt.Errorf("%s: go test failed and names no test: %s", c, tail(errs+s.text))
	}
	return nil
}

// read reads the events. A build that failed outranks everything; a test that
// never ended outranks those it took along.
func read(r io.Reader) (said, error) {
	var h hearing
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var e event
		if json.Unmarshal(sc.Bytes(), &e) == nil { // Else it is printed around the events.
			h.hear(e)
		}
	}
	h.s.text = tail(h.text.String())
	if h.s.end == doesNotBuild {
		h.s.text = tail(h.build.String() + h.s.text)
	}
	return h.s, sc.Err()
}

// hearing is what was heard so far.
type hearing struct {
	s           said
	text, build strings.Builder
	// panicked is the test in which somebody did.
	panicked string
}

func (h *hearing) hear(e event) {
	switch e.Action {
	case "build-output":
		h.build.WriteString(e.Output)
	case "pass":
		h.s.passed = h.s.passed || e.Test != ""
	case "output":
		h.line(e)
	case "fail":
		h.s = h.s.failed(e, h.panicked)
	}
}

func (h *hearing) line(e event) {
	if !chatter(e.Output) {
		h.text.WriteString(e.Output)
	}
	switch {
	case strings.HasPrefix(e.Output, "panic: test timed out"):
		h.s.end, h.s.test = hangs, e.Test
	case strings.HasPrefix(e.Output, "panic: "), strings.HasPrefix(e.Output, "fatal error: "):
		h.panicked = e.Test
	}
}

// chatter is what says nothing about a failure.
func chatter(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- PASS") || line == "PASS"
}

// failed takes a failure into account.
func (s said) failed(e event, panicked string) said {
	switch {
	case e.FailedBuild != "":
		s.end, s.test = doesNotBuild, ""
	case s.end == hangs || s.end == doesNotBuild:
	case s.end == fails:
		// The subtest comes before the test that it belongs to.
	case e.Test != "":
		s.end, s.test = fails, e.Test
	case panicked != "":
		s.end, s.test = fails, panicked+" (panic)"
	}
	return s
}

// tail is the end of a text, which is where a failure says why.
func tail(s string) string {
	const most = 2000
	s = strings.TrimSpace(s)
	if len(s) > most {
		s = "…" + s[len(s)-most:]
	}
	return s
}
