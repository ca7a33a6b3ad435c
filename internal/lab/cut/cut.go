// Package cut gives documents with every duration cut by one factor, so that a
// demo shows in minutes what takes hours. Absent durations are written out
// first, since a default cannot be cut.
package cut

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

// Options are how to cut.
type Options struct {
	// Factor divides every duration but approvalFor and permitTTL.
	Factor int
	// BurnRate replaces the page pairs by one, after the cut.
	BurnRate spec.BurnRate
	// Targets replaces the scheme and host of every action's URLs.
	Targets string
	// Actions are changes of single actions by service and name, e.g. a
	// cooldown, laid over after the cut.
	Cooldown map[string]time.Duration
}

// least is what a cut leaves of a duration.
const least = time.Second

// Files returns the files with their durations cut. Everything else, comments
// included, stays as it is where it can. Both the files and what is returned
// load as documents.
func Files(files []spec.File, o Options) ([]spec.File, error) {
	c, err := newCutter(files, o)
	if err != nil {
		return nil, fmt.Errorf("cut documents: %w", err)
	}
	out := make([]spec.File, len(files))
	for i, f := range files {
		data, err := c.file(f)
		if err != nil {
			return nil, fmt.Errorf("cut %s: %w", f.Name, err)
		}
		out[i] = spec.File{Name: f.Name, Data: data}
	}
	for _, name := range sortedKeys(o.Cooldown) {
		if !c.overlaid[name] {
			return nil, fmt.Errorf("cut documents: there is no action %q for its cooldown: name it service/action", name)
		}
	}
	if _, err := load(out); err != nil {
		return nil, fmt.Errorf("cut by %d, the documents no longer load:\n%w", o.Factor, err)
	}
	return out, nil
}

func load(files []spec.File) (spec.Set, error) {
	return spec.Load(files, []spec.Reader{openslo.Reader{}})
}

// cutter cuts file by file. The set that was loaded from all of them gives the
// durations that the files leave out.
type cutter struct {
	Options
	set     spec.Set
	targets *url.URL
	// overlaid are the keys of Cooldown that an action has.
	overlaid map[string]bool
}

func newCutter(files []spec.File, o Options) (*cutter, error) {
	c := &cutter{Options: o, overlaid: map[string]bool{}}
	switch b := o.BurnRate; {
	case o.Factor < 1:
		return nil, fmt.Errorf("the factor is %d, want 1 or more", o.Factor)
	case b.Short < time.Second || b.Long <= b.Short || b.Factor <= 0:
		return nil, fmt.Errorf("the burn rate is %s/%s x %v, want a short window of 1s or more, a longer one and a factor",
			spec.FormatDuration(b.Short), spec.FormatDuration(b.Long), b.Factor)
	}
	if o.Targets != "" {
		if err := spec.CheckURL(o.Targets); err != nil {
			return nil, fmt.Errorf("targets: %w", err)
		}
		var err error
		if c.targets, err = url.Parse(o.Targets); err != nil {
			return nil, fmt.Errorf("targets: %w", err)
		}
	}
	var err error
	c.set, err = load(files)
	return c, err
}

// by divides. Nothing becomes longer, zero stays zero, and what is cut stays
// one second and whole milliseconds, which is what a document can say.
func (c *cutter) by(d time.Duration) time.Duration {
	cut := (d / time.Duration(c.Factor)).Truncate(time.Millisecond)
	return max(cut, min(d, least))
}

// file cuts one file. Its first line says so, since its comments do not.
func (c *cutter) file(f spec.File) ([]byte, error) {
	dec := yaml.NewDecoder(bytes.NewReader(f.Data))
	var out bytes.Buffer
	fmt.Fprintf(&out, "# A copy whose durations are cut by %d. Comments below speak of the original.\n\n", c.Factor)
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := c.document(&doc); err != nil {
			return nil, err
		}
		if err := enc.Encode(&doc); err != nil {
			return nil, err
		}
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// document cuts an SLO's time window and a Remediation. Other kinds have no
// duration, or one that is a schedule's.
func (c *cutter) document(doc *yaml.Node) error {
	if len(doc.Content) != 1 {
		return nil
	}
	root := doc.Content[0]
	s := get(root, "spec")
	switch version, kind := text(root, "apiVersion"), text(root, "kind"); {
	case version == openslo.APIVersion && kind == "SLO":
		return c.slo(s)
	case version == spec.Group && kind == "Remediation":
		return c.remediation(s)
	}
	return nil
}

// longest is the default page pair's long window, which stays where no
// Remediation can replace it.
func longest() time.Duration {
	var long time.Duration
	for _, b := range spec.DefaultBurnRates() {
		long = max(long, b.Long)
	}
	return long
}

func (c *cutter) slo(s *yaml.Node) error {
	long := c.BurnRate.Long
	if svc, ok := c.set.Service(text(s, "service")); !ok || svc.Remediation.Name == "" {
		long = longest()
	}
	windows := get(s, "timeWindow")
	if windows == nil || windows.Kind != yaml.SequenceNode {
		return nil
	}
	for _, w := range windows.Content {
		d, err := spec.ParseDuration(text(w, "duration"))
		if err != nil {
			return err
		}
		setDuration(w, "duration", min(d, max(c.by(d), long)))
	}
	return nil
}
