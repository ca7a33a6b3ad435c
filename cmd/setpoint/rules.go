package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// rulesMark begins a file that may be written over.
const rulesMark = "# Counts of SLO events, recorded for Setpoint."

// rulesHead stands above the rules: what they are and how to load them.
const rulesHead = rulesMark + ` Written by
# ` + "`setpoint slo rules`" + `: write it again when an SLO changes, rather than edit it.
#
# Each rule counts the events of 5 minutes: good or bad, and total. They are
# counts and not ratios, because the mean of ratios is not the ratio of a window
# in which traffic is uneven. Setpoint reads windows of 1d and longer from these
# series where they cover 98 %% of a window, and from raw samples otherwise, so
# they are optional: nothing is measured otherwise without them, only dearer.
# The label setpoint_slo holds a digest of the queries: once those change, old
# counts are not used any more.
#
# To load it into %s:
#   promtool check rules FILE
#   rule_files: [FILE]                # in prometheus.yml; then reload the server
# and, not to wait until a whole window is recorded, the past besides:
#   promtool tsdb create-blocks-from rules --url URL --start TIME FILE
`

func (a *app) sloRulesCommand() *cobra.Command {
	var output, source string
	cmd := &cobra.Command{
		Use:   "rules [path...]",
		Short: "Write recording rules that make long windows cheap (optional)",
		Long: `Write recording rules of Prometheus that count the events of each objective in
steps of 5 minutes. A window of 30 days read from such counts costs the server
about a tenth. They are optional: Setpoint uses them where they are and cover the
window, and asks raw samples otherwise.

Without paths, the documents of the configuration are read. An objective whose
counts cannot be recorded is named on standard error, with the reason. Each
source evaluates its own rules: with several, --source says whose to write.`,
		Example: `  setpoint slo rules -o setpoint-rules.yaml && promtool check rules setpoint-rules.yaml
  setpoint slo rules slo/checkout.yaml
  setpoint slo rules --source probe -o probe-rules.yaml`,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.rules(args, output, source)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file instead of standard output")
	cmd.Flags().StringVar(&source, "source", "", "only the rules of this source of setpoint.yaml")
	return cmd
}

func (a *app) rules(paths []string, output, source string) error {
	set, sources, err := a.documentsOf(paths)
	if err != nil {
		return err
	}
	g, err := rulesOf(measure.Rules(set), sources, source)
	if err != nil {
		return err
	}
	for _, u := range g.Uncounted {
		a.say("%s: note: %s/%s is left out: %s", u.Pos, u.Service, u.Objective, u.Reason)
	}
	if len(g.Groups) == 0 {
		return errors.New("there are no counts to record in these documents, so no rules are written")
	}
	text, err := ruleFile(g, sources)
	if err != nil {
		return err
	}
	if output == "" {
		return a.print("%s", text)
	}
	if err := writeRules(output, text); err != nil {
		return err
	}
	n := 0
	for _, group := range g.Groups {
		n += len(group.Rules)
	}
	a.say("setpoint: wrote %s in %s to %s", count(n, "rule"), count(len(g.Groups), "group"), output)
	return nil
}

// documentsOf loads documents with the sources of the configuration: those that
// the paths name, for which a configuration is not needed, or its own.
func (a *app) documentsOf(paths []string) (spec.Set, []config.Source, error) {
	s, err := a.site()
	switch {
	case err != nil && (len(paths) == 0 || !errors.Is(err, errNoConfig)):
		return spec.Set{}, nil, err
	case len(paths) > 0:
		set, err := loadDocuments(paths)
		return set, s.cfg.Sources, err
	}
	set, err := s.documents()
	return set, s.cfg.Sources, err
}

// rulesOf picks the rules of one source. Rules that another source evaluates
// would record nothing there, or what nobody asks for.
func rulesOf(g measure.RuleGroups, sources []config.Source, only string) (measure.RuleGroups, error) {
	var names []string
	for i, group := range g.Groups {
		g.Groups[i].Source = sourceName(sources, group.Source)
		names = append(names, g.Groups[i].Source)
	}
	for i, u := range g.Uncounted {
		g.Uncounted[i].Source = sourceName(sources, u.Source)
		names = append(names, g.Uncounted[i].Source)
	}
	var known []string
	for _, s := range sources {
		known = append(known, s.Name)
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	switch {
	case only == "" && len(names) > 1:
		return g, fmt.Errorf("the queries go to %s, and each evaluates its own rules: choose one with --source", and(names))
	case only == "":
		return g, nil
	case len(known) > 0 && !slices.Contains(known, only):
		return g, fmt.Errorf("--source: no source is called %q in the configuration%s", only, near(only, known))
	case len(known) == 0 && !slices.Contains(names, only):
		return g, fmt.Errorf("--source: no query goes to %q%s", only, near(only, names))
	}
	return g.Of(only), nil
}

// sourceName is the name of a source where "" is the first.
func sourceName(sources []config.Source, name string) string {
	switch {
	case name != "":
		return name
	case len(sources) > 0:
		return sources[0].Name
	}
	return "(default)"
}

// near suggests a name, or lists what there is.
func near(name string, known []string) string {
	if like := spec.Nearest(name, known); like != "" {
		return fmt.Sprintf(", did you mean %q?", like)
	}
	return ": there is " + and(known)
}

// ruleFile is the text of a rule file of one source.
func ruleFile(g measure.RuleGroups, sources []config.Source) ([]byte, error) {
	where := "the server"
	if name := g.Groups[0].Source; len(sources) > 0 {
		where = "the source " + name
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, rulesHead, where)
	enc := yaml.NewEncoder(&text)
	enc.SetIndent(2)
	if err := enc.Encode(g); err != nil {
		return nil, err
	}
	return text.Bytes(), enc.Close()
}

// writeRules replaces a file at once, so that a server which reads it meanwhile
// sees a whole one. It overwrites nothing but rules of its own.
func writeRules(path string, text []byte) error {
	old, err := readRegular(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("--output: %w", err)
	case !strings.HasPrefix(string(old), rulesMark):
		return fmt.Errorf("%s is there already, is no rule file of `setpoint slo rules`, and is not overwritten: name another file", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".setpoint-rules-*")
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("--output %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
