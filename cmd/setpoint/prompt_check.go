package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
)

const promptTestLong = `Load the templates of a folder, or the configured ones, and hold them against what
a prompt has to be:

  load        every template parses, and renders without a service
  inputs      the evidence and the actions are used, and front matter that names
              inputs names those that are used
  size        a usual question is within promptTokens, and the largest one is cut
              to it
  stable      the same request gives the same bytes, whatever the order of maps
  evidence    nothing but the evidence depends on what was measured
  injection   text that strangers plant in labels, versions, descriptions, details
              and live states is not in it, and does not change it

Exit 1 when one fails.`

func (a *app) promptTestCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "test [folder]",
		Short: "Hold the templates against what a prompt has to be; exit 1 when one fails",
		Long:  promptTestLong,
		Example: `  setpoint prompt test
  setpoint prompt test prompts/ -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError(cmd, "want one folder of templates at most, got %s", count(len(args), "argument"))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			folder, name, limit, err := a.promptsOf(args)
			if err != nil {
				return err
			}
			return a.promptTest(folder, name, limit, output)
		},
	}
	outputFlag(cmd, &output, formatTable, formatJSON, formatYAML)
	return cmd
}

// promptsOf is the folder of the argument, else the configured one, else the
// built-in one, and the limit on tokens.
func (a *app) promptsOf(args []string) (folder fs.FS, name string, limit int, err error) {
	cfg := config.Default()
	s, err := a.site()
	switch {
	case err == nil:
		cfg = s.cfg
	case !errors.Is(err, errNoConfig):
		return nil, "", 0, err
	}
	path := cfg.Prompts
	if len(args) > 0 {
		path = args[0]
	}
	folder, name, err = promptsAt(path)
	return folder, name, cfg.Proposer.PromptTokens, err
}

// promptCheck is one check of `prompt test`.
type promptCheck struct {
	Check string `json:"check"`
	// Result is pass or fail.
	Result string `json:"result"`
	Detail string `json:"detail"`
}

// promptTests is the answer of `prompt test -o json`.
type promptTests struct {
	web.Meta
	Folder    string           `json:"folder"`
	Passed    int              `json:"passed"`
	Failed    int              `json:"failed"`
	Templates []promptTemplate `json:"templates"`
	Items     []promptCheck    `json:"items"`
}

func (t *promptTests) add(check, fault, detail string) {
	c := promptCheck{Check: check, Result: "pass", Detail: detail}
	t.Passed++
	if fault != "" {
		c.Result, c.Detail = "fail", fault
		t.Passed, t.Failed = t.Passed-1, t.Failed+1
	}
	t.Items = append(t.Items, c)
}

func (a *app) promptTest(folder fs.FS, name string, limit int, output string) error {
	t := &promptTests{Meta: web.Meta{APIVersion: spec.Group, Kind: "PromptTests"}, Folder: name, Templates: []promptTemplate{}}
	p, err := propose.LoadPrompts(folder)
	if err != nil {
		t.add("load", err.Error(), "")
	} else {
		t.Templates = templatesOf(p)
		t.add("load", "", p.Version())
		for _, check := range []func(*propose.Prompts, int) (name, fault, detail string){
			checkInputs, checkSize, checkLargest, checkStable, checkEvidence, checkInjection, checkRepair,
		} {
			t.add(check(p, limit))
		}
	}
	if err := a.showPromptTests(t, output); err != nil {
		return err
	}
	if t.Failed > 0 {
		return exitCode(exitError)
	}
	return nil
}

func (a *app) showPromptTests(t *promptTests, output string) error {
	if output != formatTable {
		return emit(a.out, output, t)
	}
	lines := &table{header: []string{"CHECK", "RESULT", "DETAIL"}, coloured: []int{1}}
	for _, c := range t.Items {
		lines.add(c.Check, c.Result, visible(c.Detail))
	}
	if err := lines.write(a.out, a.colour); err != nil {
		return err
	}
	return a.print("%s: %d passed, %d failed\n", visible(t.Folder), t.Passed, t.Failed)
}

// checkInputs: a prompt without evidence asks about nothing.
func checkInputs(p *propose.Prompts, _ int) (name, fault, detail string) {
	var used, undeclared []string
	for _, t := range p.Templates() {
		used = append(used, t.Uses...)
		if !t.Declared && !t.Older {
			undeclared = append(undeclared, t.ID)
		}
		if t.Older {
			detail += "; " + t.ID + ".tmpl is not in the folder, so the words that are built in are used"
		}
	}
	for _, need := range []string{"Evidence", "Actions"} {
		if !slices.Contains(used, need) {
			return "inputs", "no template uses {{." + need + "}}", ""
		}
	}
	slices.Sort(used)
	if len(undeclared) > 0 {
		detail += "; not declared in " + strings.Join(undeclared, ", ")
	}
	return "inputs", "", "used: " + strings.Join(slices.Compact(used), ", ") + detail
}

func checkSize(p *propose.Prompts, limit int) (name, fault, detail string) {
	return fits("size: usual", p, usual(), limit, true)
}

func checkLargest(p *propose.Prompts, limit int) (name, fault, detail string) {
	return fits("size: largest", p, largest(), limit, false)
}

// fits reports whether a question is within the limit; whole wants nothing left
// out of it for size.
func fits(check string, p *propose.Prompts, r propose.Request, limit int, whole bool) (name, fault, detail string) {
	schema, err := propose.WireSchema(r.Catalogue)
	if err != nil {
		return check, err.Error(), ""
	}
	got, err := p.Fit(r, limit, len(schema))
	if err != nil {
		return check, err.Error(), ""
	}
	all, err := p.Fit(r, 0, len(schema))
	if err != nil {
		return check, err.Error(), ""
	}
	detail = fmt.Sprintf("about %d tokens, promptTokens is %d", got.Tokens, limit)
	if cut := all.Tokens - got.Tokens; cut > 0 && whole {
		return check, fmt.Sprintf("%s, but %d tokens of facts have to be left out: shorten the templates, or raise the limit", detail, cut), ""
	} else if cut > 0 {
		detail += fmt.Sprintf("; facts of about %d more are left out", cut)
	}
	return check, "", detail
}

// checkStable renders what was built in another order, as maps are.
func checkStable(p *propose.Prompts, _ int) (name, fault, detail string) {
	for kind, make := range fixtures {
		want, err := rendered(p, make())
		if err != nil {
			return "stable", err.Error(), ""
		}
		for range 20 {
			if got, err := rendered(p, make()); err != nil || !bytes.Equal(want, got) {
				return "stable", "two renderings of the " + kind + " request differ", ""
			}
		}
	}
	return "stable", "", fmt.Sprintf("%d requests, 21 renderings of each are equal", len(fixtures))
}

// rendered is all that is sent, but for the schema.
func rendered(p *propose.Prompts, r propose.Request) ([]byte, error) {
	system, user, err := p.Render(r)
	return []byte(system + "\x00" + user), err
}

// checkEvidence: outside of the evidence the words are those of the templates,
// and the names of the actions.
func checkEvidence(p *propose.Prompts, _ int) (name, fault, detail string) {
	var frames []string
	for _, r := range []propose.Request{usual(), planted("a stranger's text")} {
		all, err := rendered(p, r)
		if err != nil {
			return "evidence", err.Error(), ""
		}
		evidence := propose.Evidence(r)
		if n := bytes.Count(all, evidence); n != 1 {
			return "evidence", fmt.Sprintf("the evidence is in it %d times, as it is; want once, by {{.Evidence}}", n), ""
		}
		frames = append(frames, string(bytes.Replace(all, evidence, nil, 1)))
	}
	if frames[0] != frames[1] {
		return "evidence", "what was measured changes more than the evidence", ""
	}
	return "evidence", "", "once, and all else is the templates' own"
}

// checkInjection plants each text of the corpus in every place of strangers.
func checkInjection(p *propose.Prompts, _ int) (name, fault, detail string) {
	want, err := rendered(p, planted("plain text"))
	if err != nil {
		return "injection", err.Error(), ""
	}
	for _, text := range planting {
		got, err := rendered(p, planted(text))
		switch {
		case err != nil:
			return "injection", err.Error(), ""
		case !bytes.Equal(want, got):
			return "injection", fmt.Sprintf("it depends on the text %q of a stranger", text), ""
		}
	}
	return "injection", "", fmt.Sprintf("%d texts in every place of strangers change not one byte", len(planting))
}

// checkRepair: what a repair turn quotes of a stranger is short and harmless.
func checkRepair(p *propose.Prompts, _ int) (name, fault, detail string) {
	text, err := p.Repair("unknown action " + strings.Repeat("\u202e\x1b[2J x", 500))
	switch {
	case err != nil:
		return "repair", err.Error(), ""
	case strings.ContainsAny(text, "\u202e\x1b"):
		return "repair", "it shows control or bidirectional characters", ""
	case !strings.Contains(text, "unknown action"):
		return "repair", "it does not show what was wrong: use {{.Fault}}", ""
	}
	return "repair", "", fmt.Sprintf("about %d tokens at most, with what was wrong", propose.EstimateText(text))
}
