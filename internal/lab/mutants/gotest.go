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
// answer may come from go's cache. Its error says that go could not be asked.
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
	cmd := exec.CommandContext(ctx, r.command, append(args, c.Package)...)
	cmd.Dir = r.root
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	runErr := cmd.Run()
	if err := ctx.Err(); err != nil {
		return said{}, fmt.Errorf("%s: %w", c, err)
	}
	var exited *exec.ExitError
	if runErr != nil && !errors.As(runErr, &exited) {
		return said{}, fmt.Errorf("%s: %w", c, runErr)
	}
	s, err := read(&out)
	switch {
	case err != nil:
		return said{}, fmt.Errorf("%s: %w", c, err)
	case runErr == nil && !s.passed:
		return said{}, fmt.Errorf("%s: no test has that name, or all were skipped: %s", c, s.text)
	case runErr != nil && s.end == passes:
		return said{}, fmt.Errorf("%s: go test failed and names no test: %s", c, tail(errs.String()+s.text))
	}
	return s, nil
}

// read reads the events. A build that failed outranks everything; a test that
// never ended outranks those it took along.
func read(r io.Reader) (s said, err error) {
	var text, build strings.Builder
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 16<<20)
	panicked := ""
	for sc.Scan() {
		var e event
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			continue // What is printed around the events.
		}
		switch e.Action {
		case "build-output":
			build.WriteString(e.Output)
		case "pass":
			s.passed = s.passed || e.Test != ""
		case "output":
			if !chatter(e.Output) {
				text.WriteString(e.Output)
			}
			switch {
			case strings.HasPrefix(e.Output, "panic: test timed out"):
				s.end, s.test = hangs, e.Test
			case strings.HasPrefix(e.Output, "panic: "), strings.HasPrefix(e.Output, "fatal error: "):
				panicked = e.Test
			}
		case "fail":
			s = s.failed(e, panicked)
		}
	}
	s.text = tail(text.String())
	if s.end == doesNotBuild {
		s.text = tail(build.String() + s.text)
	}
	return s, sc.Err()
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
