// Package demo is the demo, in real time: it takes the folder with slo/ and the
// built agent, lets three services really degrade, and gives a summary of what
// was measured. The agent is a process of its own that knows nothing of it.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

// Options are how to run the demo.
type Options struct {
	// Root holds slo/ and evals/.
	Root string
	// Setpoint is the path of the built agent.
	Setpoint string
	// Yes answers the question instead of a person; JSON prints the summary as
	// the last line of Out and everything else to Err; Keep keeps the folder.
	Yes, JSON, Keep bool
	// Terminal is where a person types; nil when nobody does.
	Terminal io.Reader
	Out, Err io.Writer
	Colour   bool
}

// demo is one run.
type demo struct {
	o      Options
	paper  *paper
	you    string
	site   *site
	world  *world
	agent  *agent
	faults map[string]time.Time
}

// Run runs the demo. It returns nil only when every claim was measured; an
// error names each that was not. Nothing that it started outlives it.
func Run(ctx context.Context, o Options) error {
	p := &paper{w: o.Out, colour: o.Colour, began: time.Now()}
	if o.JSON {
		p.w = o.Err
	}
	d := &demo{o: o, paper: p, you: web.OSActor(uint32(os.Getuid())), faults: map[string]time.Time{}}
	e, err := d.run(ctx)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	vs := weigh(e)
	p.say(plain, "")
	p.ends(e)
	p.say(plain, "")
	p.verdicts(vs)
	if o.JSON {
		if err := summarise(e).write(o.Out); err != nil {
			return err
		}
	}
	return unmeasured(vs)
}

// unmeasured names every claim that does not hold.
func unmeasured(vs []verdict) error {
	var lines []string
	for _, v := range vs {
		if !v.holds() {
			lines = append(lines, strings.TrimPrefix(v.service+": ", ": ")+v.text+": "+v.why)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("demo: %d of %d claims were not measured:\n  %s", len(lines), len(vs), strings.Join(lines, "\n  "))
}

// run is the whole demo: a site, a world, an agent, the faults, and the
// evidence. Whatever happens, it ends what it started, the newest first.
func (d *demo) run(ctx context.Context) (e evidence, err error) {
	began := d.paper.began
	book, err := loadRules(d.o.Root)
	if err != nil {
		return e, err
	}
	if d.site, err = newSite(); err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, d.tidy()) }()
	if d.world, err = newWorld(ctx, d.site, book); err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, d.world.close()) }()
	if err := d.site.fill(d.o.Root, d.world.places, d.you); err != nil {
		return e, err
	}
	d.agent = newAgent(d.o.Setpoint, d.site)
	defer func() { err = errors.Join(err, d.agent.stop()) }()
	d.introduce()
	if err := d.prepare(ctx); err != nil {
		return e, err
	}
	watch, cancel := context.WithDeadline(ctx, began.Add(longest))
	defer cancel()
	err = d.play(watch)
	if ctx.Err() != nil {
		return e, ctx.Err()
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return e, err
	}
	return d.collect(ctx)
}

func (d *demo) tidy() error {
	if d.o.Keep {
		d.paper.say(plain, "kept: %s", d.site.dir)
		return nil
	}
	return os.RemoveAll(d.site.dir)
}

func (d *demo) introduce() {
	p := d.paper
	p.say(bold, "Setpoint: three services degrade, and an agent may take one permitted step per window.")
	p.say(plain, "")
	p.say(plain, "  proposer   a rules file (%s) behind an OpenAI-compatible endpoint on loopback;", rulesFile)
	p.say(plain, "             it is NOT a language model, and nothing leaves this machine")
	p.say(plain, "  measured   by Prometheus's own engine in this process, scraping each %s", spec.FormatDuration(scrape))
	p.say(plain, "  documents  slo/ with every duration divided by %d (approvalFor and permitTTL excepted)", factor)
	p.say(plain, "             and one pair that pages: %s and %s × %g", spec.FormatDuration(pagePair.Short), spec.FormatDuration(pagePair.Long), pagePair.Factor)
	p.say(plain, "  policy     the shipped one; limits: maxMode auto, minSpacing 4s")
	p.say(plain, "  files      %s", d.site.dir)
	p.say(plain, "")
}

// prepare lets traffic flow, and makes a ledger for an agent whose documents
// are checked.
func (d *demo) prepare(ctx context.Context) error {
	traffic := time.NewTimer(warmup)
	defer traffic.Stop()
	if _, err := d.agent.command(ctx, "ledger", "init"); err != nil {
		return err
	}
	ceilings, err := d.agent.command(ctx, "validate")
	if err != nil {
		return err
	}
	d.paper.say(faint, "$ setpoint validate")
	for line := range strings.Lines(ceilings) {
		d.paper.say(faint, "  %s", strings.TrimRight(line, "\n"))
	}
	d.paper.say(plain, "")
	d.paper.event("", "traffic flows; the agent starts in %s, so that its first look finds a judge window", spec.FormatDuration(warmup))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-traffic.C:
	}
	if err := d.agent.start(); err != nil {
		return err
	}
	d.paper.event("", "setpoint run, pid %d; the first fault comes when every service was met for %s and %s are covered",
		d.agent.cmd.Process.Pid, spec.FormatDuration(d.site.holdFor()), spec.FormatDuration(pagePair.Long))
	return nil
}

// collect stops the agent and reads what is left behind: the chain, which must
// verify, the journal, the pager, and the engine's own answers.
func (d *demo) collect(ctx context.Context) (evidence, error) {
	e := evidence{you: d.you}
	if err := d.agent.stop(); err != nil {
		return e, err
	}
	if _, err := d.agent.command(ctx, "ledger", "verify"); err != nil {
		return e, err
	}
	state, entries, err := readChain(ctx, d.site.path(ledgerFile))
	if err != nil {
		return e, err
	}
	e.chain = state
	if e.episodes, err = episodesSince(entries, d.faults); err != nil {
		return e, err
	}
	e.journal, e.pages = d.world.shop.Journal(), d.world.pager.Pages()
	for _, s := range plot {
		ps, err := ask(ctx, d.world.engine, d.site.set, e.effects(s.service))
		if err != nil {
			return e, err
		}
		e.probes = append(e.probes, ps...)
	}
	return e, nil
}

// command is a command of the agent's that a person can type anywhere.
func (d *demo) command(args string) string {
	return fmt.Sprintf("%s --config %s %s", d.o.Setpoint, filepath.Join(d.site.dir, configFile), args)
}
