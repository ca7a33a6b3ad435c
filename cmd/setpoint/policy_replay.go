package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/ledger/replay"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// What --fail-on knows.
const (
	failChanged  = "changed"
	failLoosened = "loosened"
	failNone     = "none"
)

// replayFlags are the flags of `policy replay`.
type replayFlags struct {
	since, until, service, with, ledger, failOn, output string
	all                                                 bool
}

const policyReplayLong = `Judge recorded decisions again, under the policy that ruled on them and under
another one. Floors and input of each decision, and the bundle that ruled on it,
are in the ledger; nothing is measured again, and nothing is written or sent.

Under its own policy each decision has to come out exactly as it was recorded:
verdict, hold, reasons, needs, rules with file and line. One that does not is
named, with what differs. Under the other policy it may change:

  loosened      more can be done without a person, or fewer people must agree
  tightened     the opposite
  other-people  others are asked than before
  changed       neither: deny became escalate, or what is held is refused

A decision that a floor holds is compared by what is left once that passes
("hold, then auto"). Where floors bind whatever policy says, a ruling that
differs is counted as hidden; where only the rules differ, as other reasons.
Both are listed with --all.

--ledger reads an export (setpoint ledger export, gzip too), and needs no
configuration beside --with: this runs in the CI of a policy's own repository.
There --since counts back from the newest entry, otherwise from now.

Exit code 0: nothing changes that --fail-on names. 2: something does. 1: an
error, a recorded decision that does not reproduce, or nothing to replay; 1 wins
over 2, since what is compared with a record that cannot be trusted says nothing.`

func (a *app) policyReplayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Judge recorded decisions again under an edited policy; exit 2 when verdicts change",
		Long:  policyReplayLong,
		Example: `  setpoint policy replay --since 30d --with policies/
  setpoint policy replay --with policies/ --ledger month.jsonl.gz --fail-on loosened
  setpoint ledger export | setpoint policy replay --with new/ --ledger - -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains([]string{failChanged, failLoosened, failNone}, f.failOn) {
				return usageError(cmd, "--fail-on wants changed, loosened or none, not %q", f.failOn)
			}
			return a.policyReplay(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.since, "since", "30d", "only decisions since: a duration back such as 30d, or a time")
	flags.StringVar(&f.until, "until", "", "only decisions before: a duration back such as 1d, or a time")
	flags.StringVar(&f.service, "service", "", "only decisions about this service")
	flags.StringVar(&f.with, "with", "", "the bundle folder to judge by (default policies.path of the configuration)")
	flags.StringVar(&f.ledger, "ledger", "", "read this export instead of the configured ledger; - is standard input")
	flags.StringVar(&f.failOn, "fail-on", failChanged, "what is exit 2: changed|loosened|none")
	flags.BoolVar(&f.all, "all", false, "also list what comes out alike, by other rules or because floors hide it")
	_ = cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{failChanged, failLoosened, failNone}, cobra.ShellCompDirectiveNoFileComp)) // The flag exists.
	outputFlag(cmd, &f.output, formatTable, formatJSON, formatYAML)
	return cmd
}

func (a *app) policyReplay(cmd *cobra.Command, f replayFlags) (err error) {
	by, name, err := a.replayWith(f.with)
	if err != nil {
		return err
	}
	past, err := a.recorded(cmd.Context(), f.ledger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, past.close()) }()
	o := replay.Options{With: by, Load: loadRecorded, Service: f.service}
	if o.Since, err = web.ParseSince(f.since, past.newest); err != nil {
		return usageError(cmd, "--since: %v", err)
	}
	if f.until != "" {
		if o.Until, err = web.ParseSince(f.until, past.newest); err != nil {
			return usageError(cmd, "--until: %v", err)
		}
	}
	var r replay.Report
	show := a.replayProgress()
	err = replay.Run(cmd.Context(), past, o, func(j replay.Judged) error {
		r.Add(j)
		show(r.Decisions)
		return nil
	})
	a.progress("")
	if err != nil {
		return fmt.Errorf("replay %s: %w", past.name, err)
	}
	if err := a.showReplay(replayed{past.name, name, by.Revision(), o, &r}, f); err != nil {
		return err
	}
	return a.replayEnd(&r, f, by)
}

// replayEnd says what ends the command, gravest first.
func (a *app) replayEnd(r *replay.Report, f replayFlags, by *timed) error {
	if slowest := time.Duration(by.slowest.Load()); slowest > rego.DefaultDeadline {
		a.say("setpoint: the slowest evaluation took %s, and an agent ends one after %s: the decision is then held", slowest.Round(time.Millisecond), rego.DefaultDeadline)
	}
	for _, j := range r.Faults {
		a.say("%s (entry %d, %s, %s) does not reproduce: %s", j.ID, j.Entry, j.Service, clock(j.Time), strings.Map(printable, j.Why))
	}
	if more := r.NotReproduced - len(r.Faults); more > 0 {
		a.say("and %d more", more)
	}
	switch {
	case r.NotReproduced > 0:
		a.say("setpoint: %s not reproduce: the ledger, or this version, is not the one that decided; nothing here can be trusted", count(r.NotReproduced, "recorded decision")+plural(r.NotReproduced, " does", " do"))
		return exitCode(exitError)
	case r.Reproduced == 0:
		return errors.New("nothing was replayed, which says nothing about the policy: see --since, --until and --service")
	case f.failOn == failChanged && r.Changed > 0, f.failOn == failLoosened && r.Loosened > 0:
		return exitCode(exitFound)
	}
	return nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// replayWith loads the policy to judge by, whole or not at all.
func (a *app) replayWith(folder string) (*timed, string, error) {
	if folder == "" {
		s, err := a.site()
		switch {
		case errors.Is(err, errNoConfig):
			return nil, "", fmt.Errorf("which policy? Name its folder with --with: %w", err)
		case err != nil:
			return nil, "", err
		case s.cfg.Policies.Path == "":
			return nil, "", fmt.Errorf("which policy? Name its folder with --with: %s has no policies.path, and the built-in policy is not edited", s.file)
		}
		folder = s.cfg.Policies.Path
	}
	fsys, name, err := bundleAt(folder)
	if err != nil {
		return nil, "", err
	}
	p, err := rego.Load(fsys, rego.Options{Deadline: replayDeadline})
	var found rego.Findings
	if errors.As(err, &found) {
		for _, f := range found {
			if f.File != "" {
				f.File = path.Join(name, f.File)
			}
			a.say("%s", f)
		}
		return nil, "", fmt.Errorf("%s: %s; nothing was replayed", name, count(len(found), "fault"))
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	return &timed{Policy: p}, name, nil
}

// replayDeadline is long, so that a busy machine is not taken for a verdict.
const replayDeadline = 10 * rego.DefaultDeadline

// loadRecorded makes a policy of the bundle that a decision names.
func loadRecorded(raw []byte) (replay.Policy, error) {
	b, err := rego.Unpack(raw)
	if err != nil {
		return nil, err
	}
	p, err := b.Load(rego.Options{Deadline: replayDeadline})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// timed is a policy that remembers its slowest evaluation.
type timed struct {
	replay.Policy
	slowest atomic.Int64
}

// Evaluate rules on one input.
func (t *timed) Evaluate(ctx context.Context, input []byte) gate.Ruling {
	began := time.Now()
	r := t.Policy.Evaluate(ctx, input)
	took := int64(time.Since(began))
	for {
		was := t.slowest.Load()
		if took <= was || t.slowest.CompareAndSwap(was, took) {
			return r
		}
	}
}

// recorded is a past with its name for people.
type recorded struct {
	replay.Source
	name string
	// newest is from when --since counts back.
	newest time.Time
	close  func() error
}

// recorded opens the configured ledger, or reads an export.
func (a *app) recorded(ctx context.Context, file string) (recorded, error) {
	if file != "" {
		x, err := a.readExport(file)
		return recorded{x, file, x.Newest(), func() error { return nil }}, err
	}
	s, err := a.site()
	if err != nil {
		return recorded{}, err
	}
	r, err := readLedger(ctx, s)
	if err != nil {
		return recorded{}, err
	}
	a.cautionSeen(ctx, s, r)
	return recorded{r, s.where(), a.now(), r.Close}, nil
}

func (a *app) readExport(file string) (x replay.Export, err error) {
	in := io.NopCloser(a.in)
	if file != "-" {
		if in, err = openRegular(file); err != nil {
			return x, fmt.Errorf("--ledger: %w", err)
		}
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	text, err := unzipped(in)
	if err == nil {
		x.Exported, err = ledger.ReadExport(text)
	}
	if err != nil {
		return x, fmt.Errorf("--ledger %s: %w; `setpoint ledger export` writes one", file, err)
	}
	return x, nil
}

// unzipped reads gzip, whatever the file is called, and refuses a database.
func unzipped(r io.Reader) (io.Reader, error) {
	in := bufio.NewReader(r)
	head, err := in.Peek(len(sqliteMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.Equal(head, []byte(sqliteMagic)):
		return nil, errors.New("this is a ledger itself, not an export of one")
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return gzip.NewReader(in)
	}
	return in, nil
}

const sqliteMagic = "SQLite format 3\x00"

// replayProgress says how far it is, four times a second.
func (a *app) replayProgress() func(n int) {
	began := time.Now()
	last := began
	return func(n int) {
		if now := time.Now(); now.Sub(last) >= time.Second/4 {
			last = now
			a.progress("%d decisions, %.0f a second", n, float64(n)/now.Sub(began).Seconds())
		}
	}
}
