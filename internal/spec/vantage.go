package spec

import "strings"

// maxVantages is how many vantage points an objective may have. Each one
// multiplies the queries, and more than these agree on nothing that fewer do not.
const maxVantages = 4

// vantageDoc is one vantage point: the name of a source, or a mapping that also
// says what to ask there.
type vantageDoc struct {
	source string
	keys   vantageKeys
	// own are the queries of its own; without any, those of the SLO are asked.
	own    Indicator
	hasOwn bool
	// faulty: the element did not decode, so a missing part is no news.
	faulty bool
}

type vantageKeys struct {
	Source  string  `yaml:"source,required"`
	Good    *string `yaml:"good"`
	Bad     *string `yaml:"bad"`
	Total   *string `yaml:"total"`
	Raw     *string `yaml:"raw"`
	RawType *string `yaml:"rawType"`
	Counter bool    `yaml:"counter"`
}

// UnmarshalValue reads a name or a mapping.
func (d *vantageDoc) UnmarshalValue(v Value) Faults {
	if name, ok := v.Text(); ok {
		d.source = name
		return nil
	}
	if d.faulty = !v.IsMapping(); d.faulty {
		return Faults{v.Fault("want the name of a source, or a mapping with source and its own queries, got %s%s",
			describe(v.node), quoteHint(v.node))}
	}
	faults := v.Decode(&d.keys)
	k := d.keys
	query := func(key string, expr *string, counter bool) *Query {
		if expr == nil {
			return nil
		}
		at, _ := v.Child(key)
		q := Query{Expr: strings.TrimSpace(*expr), Source: k.Source, Pos: at.Pos()}
		q.Counter = counter && !q.HasWindow()
		return &q
	}
	d.source, d.faulty = k.Source, len(faults) > 0
	d.own = Indicator{
		Good: query("good", k.Good, k.Counter), Bad: query("bad", k.Bad, k.Counter), Total: query("total", k.Total, k.Counter),
		Raw: query("raw", k.Raw, false), RawSuccess: k.RawType != nil && *k.RawType == "success",
		AbsentBadZero: k.Bad != nil,
	}
	d.hasOwn = len(d.own.Queries()) > 0 || k.RawType != nil || k.Counter
	return faults
}

// indicator is what is asked at the vantage point.
func (d vantageDoc) indicator(document Indicator) Indicator {
	if d.hasOwn {
		return d.own
	}
	return document.at(d.source)
}

// at returns the indicator as it is asked of another source.
func (i Indicator) at(source string) Indicator {
	for _, q := range []**Query{&i.Good, &i.Bad, &i.Total, &i.Raw} {
		if *q != nil {
			moved := **q
			moved.Source = source
			*q = &moved
		}
	}
	return i
}

// sources checks the vantage points of one override.
func (c *checker) sources(at string, all []vantageDoc) {
	seen := map[string]bool{}
	for i, d := range all {
		if d.faulty {
			continue
		}
		here := IndexPath(at, i)
		c.that(d.source != "", here, "names no source: give its name in setpoint.yaml, or remove the element")
		if d.hasOwn {
			c.vantage(here, d)
			continue // A probe's metrics may stand in the server's own Prometheus.
		}
		c.that(!seen[d.source], here, "%q measures the SLO's own query already: name another source, or give it a query of its own", shorten(d.source))
		seen[d.source] = true
	}
	c.that(len(all) <= maxVantages, at, "are %d vantage points, want at most %d: name those that see most", len(all), maxVantages)
}

func (c *checker) vantage(at string, d vantageDoc) {
	if d.own.Raw != nil {
		c.rawVantage(at, d)
	} else {
		c.ratioVantage(at, d)
	}
	for _, p := range d.own.parts() {
		if err := p.query.Check(); err != nil {
			c.fault(at+"."+p.name, "%s", err)
		}
	}
}

func (c *checker) rawVantage(at string, d vantageDoc) {
	c.that(d.own.Good == nil && d.own.Bad == nil && d.own.Total == nil, at, "has raw beside good, bad or total: give one kind")
	switch kind := d.keys.RawType; {
	case kind == nil:
		c.fault(at+".rawType", "is required beside raw: success (raw is the share of good events) or failure (of bad ones)")
	case *kind != "success" && *kind != "failure":
		c.fault(at+".rawType", "%q is unknown here, want success (raw is the share of good events) or failure (of bad ones)", shorten(*kind))
	}
	c.that(!d.keys.Counter, at+".counter", "is for counts; raw is a ratio already: remove it")
}

func (c *checker) ratioVantage(at string, d vantageDoc) {
	in := d.own
	switch {
	case in.Good != nil && in.Bad != nil:
		c.fault(at, "has both good and bad: give one of them, and total")
	case in.Good == nil && in.Bad == nil:
		c.fault(at, "needs good or bad beside total, or raw with rawType; without any, the queries of the SLO are asked")
	case in.Total == nil:
		c.fault(at+".total", "is required beside good or bad: a ratio without its total hides how much it rests on")
	}
	c.that(d.keys.RawType == nil, at+".rawType", "belongs to raw: remove it")
}
