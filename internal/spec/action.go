package spec

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

type actionDoc struct {
	Name        string                  `yaml:"name,required"`
	Uses        string                  `yaml:"uses,required"`
	Target      Value                   `yaml:"target,required"`
	Class       Class                   `yaml:"class,required"`
	Reversal    Reversal                `yaml:"reversal,required"`
	Settle      time.Duration           `yaml:"settle"`
	Cooldown    time.Duration           `yaml:"cooldown"`
	Timeout     time.Duration           `yaml:"timeout"`
	MaxLateness time.Duration           `yaml:"maxLateness"`
	Parameters  map[string]parameterDoc `yaml:"parameters"`
	Pos         Position                `yaml:",pos"`
}

// SetDefaults fills in what an action says by saying nothing: it has two
// minutes to show an effect, is not tried again for half an hour, its request
// may take ten seconds and arrive thirty seconds later still.
func (a *actionDoc) SetDefaults() {
	a.Settle = 2 * time.Minute
	a.Cooldown = 30 * time.Minute
	a.Timeout = 10 * time.Second
	a.MaxLateness = 30 * time.Second
}

type parameterDoc struct {
	Type          ParameterType `yaml:"type,required"`
	Minimum       *float64      `yaml:"minimum"`
	Maximum       *float64      `yaml:"maximum"`
	MaximumFactor *float64      `yaml:"maximumFactor"`
	Enum          []string      `yaml:"enum"`
	Pattern       *string       `yaml:"pattern"`
	FromState     *string       `yaml:"fromState"`
	Pos           Position      `yaml:",pos"`
}

// oneOf checks a word of a closed list.
func oneOf[T ~string](c *checker, path, what string, got T, words ...T) {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	last := len(list) - 1
	c.that(slices.Contains(words, got), path, "unknown %s %q, want %s or %s",
		what, shorten(string(got)), strings.Join(list[:last], ", "), list[last])
}

// action checks one action and returns it.
func (c *checker) action(at string, doc actionDoc) Action {
	a := Action{
		Name: doc.Name, Uses: doc.Uses, Class: doc.Class, Reversal: doc.Reversal,
		Settle: doc.Settle, Cooldown: doc.Cooldown, Timeout: doc.Timeout, MaxLateness: doc.MaxLateness,
		Pos: doc.Pos,
	}
	for _, name := range sortedKeys(doc.Parameters) {
		p := doc.Parameters[name]
		a.Parameters = append(a.Parameters, Parameter{
			Name: name, Type: p.Type, Minimum: p.Minimum, Maximum: p.Maximum, MaximumFactor: deref(p.MaximumFactor),
			Enum: p.Enum, Pattern: deref(p.Pattern), FromState: deref(p.FromState), Pos: p.Pos,
		})
	}
	oneOf(c, at+".class", "class", a.Class, ClassAuto, ClassApproval, ClassEscalate)
	oneOf(c, at+".reversal", "reversal", a.Reversal, Transient, Restore, Irreversible)
	c.between(at+".settle", a.Settle, 0, day)
	c.between(at+".cooldown", a.Cooldown, 0, 30*day)
	c.between(at+".timeout", a.Timeout, 100*time.Millisecond, 5*time.Minute)
	c.between(at+".maxLateness", a.MaxLateness, 0, time.Hour)
	if c.uses(at+".uses", a.Uses) {
		c.target(at+".target", &a, doc.Target)
		c.observable(at, a)
	}
	for _, p := range a.Parameters {
		c.parameter(KeyPath(at+".parameters", p.Name), p, doc.Parameters[p.Name])
	}
	return a
}

func deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

// uses refuses an executor that this version does not have, by its name.
func (c *checker) uses(path, uses string) bool {
	if _, ok := targetKeys[uses]; ok {
		return true
	}
	executor, verb, ok := strings.Cut(uses, ".")
	switch {
	case uses == "":
	case executor == "kubernetes" && verb != "":
		c.fault(path, "not supported by this version: %s", shorten(uses))
	case ok && executor == "webhook":
		c.fault(path, "webhook has no verb %q: use webhook.post", shorten(verb))
	case ok && executor == "command":
		c.fault(path, "command has no verb %q: use command.run", shorten(verb))
	default:
		c.fault(path, "unknown executor %q: use executor.verb, e.g. webhook.post", shorten(uses))
	}
	return false
}

// observable checks that what an action needs to read from its target can be
// read there.
func (c *checker) observable(at string, a Action) {
	hasStatus, key := a.Target.StatusURL != "", "target.statusURL"
	if a.Uses == usesCommand {
		hasStatus, key = len(a.Target.StatusArgv) > 0, "target.statusArgv"
	}
	if a.Reversal == Restore {
		c.that(hasStatus, at+".reversal", "restore needs %s: the undo writes back the state that is read there", key)
		c.that(len(a.Parameters) > 0, at+".reversal",
			"restore needs parameters to write back: without any, the action is transient or irreversible")
	}
	for _, p := range a.Parameters {
		path := KeyPath(at+".parameters", p.Name)
		c.that(p.FromState == "" || hasStatus, path+".fromState", "needs %s, where the state is read", key)
		c.that(p.MaximumFactor == 0 || hasStatus, path+".maximumFactor", "needs %s, where the current value is read", key)
	}
}

var parameterName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,62}$`)

func (c *checker) parameter(at string, p Parameter, doc parameterDoc) {
	c.that(parameterName.MatchString(p.Name), at, "%q is no parameter name: start with a letter, "+
		"then letters, digits, '_' and '-', at most 63", shorten(p.Name))
	oneOf(c, at+".type", "parameter type", p.Type, Integer, Number, String, Boolean)
	known := slices.Contains([]ParameterType{Integer, Number, String, Boolean}, p.Type)
	numeric, text := p.Type == Integer || p.Type == Number, p.Type == String
	for _, k := range []struct {
		key       string
		set, fits bool
		what      string
	}{
		{"minimum", doc.Minimum != nil, numeric, "integers and numbers"},
		{"maximum", doc.Maximum != nil, numeric, "integers and numbers"},
		{"maximumFactor", doc.MaximumFactor != nil, numeric, "integers and numbers"},
		{"enum", doc.Enum != nil, text, "strings"},
		{"pattern", doc.Pattern != nil, text, "strings"},
		{"fromState", doc.FromState != nil, text, "strings"},
	} {
		c.that(!k.set || k.fits || !known, at+"."+k.key, "is for %s, not for type %s: remove it", k.what, p.Type)
	}
	switch {
	case numeric:
		c.numericBounds(at, p, doc)
	case text:
		c.textBounds(at, p, doc)
	}
}

func (c *checker) numericBounds(at string, p Parameter, doc parameterDoc) {
	if p.Minimum == nil || p.Maximum == nil {
		c.fault(at, "needs both minimum and maximum: what is proposed is always bounded")
		return
	}
	c.that(*p.Minimum <= *p.Maximum, at, "has minimum %v above maximum %v", *p.Minimum, *p.Maximum)
	if p.Type == Integer {
		const exact = 1 << 53
		for key, bound := range map[string]float64{"minimum": *p.Minimum, "maximum": *p.Maximum} {
			c.that(bound == math.Trunc(bound) && math.Abs(bound) <= exact, at+"."+key,
				"is %v, want a whole number of at most 2^53", bound)
		}
	}
	if doc.MaximumFactor != nil {
		c.that(p.MaximumFactor >= 1, at+".maximumFactor", "is %v, want 1 or more", p.MaximumFactor)
		c.that(*p.Minimum >= 0, at+".maximumFactor", "needs a minimum of 0 or more, because it multiplies max(current, minimum)")
	}
}

func (c *checker) textBounds(at string, p Parameter, doc parameterDoc) {
	bounds := 0
	for _, set := range []bool{doc.Enum != nil, doc.Pattern != nil, doc.FromState != nil} {
		if set {
			bounds++
		}
	}
	c.that(bounds == 1, at, "needs exactly one of enum, pattern and fromState: what is proposed is always bounded")
	if doc.Enum != nil {
		c.that(len(doc.Enum) > 0, at+".enum", "is empty: list the values that are allowed")
		c.unique(at+".enum", doc.Enum)
	}
	if doc.Pattern != nil {
		// Alone first: "a)|(b" compiles inside the anchored group, and escapes it.
		if _, err := regexp.Compile(p.Pattern); err != nil {
			c.fault(at+".pattern", "is no regular expression (RE2): %s", err)
		}
		c.that(p.Pattern != "", at+".pattern", "is empty: it would allow nothing but the empty text")
	}
	if doc.FromState != nil {
		c.that(parameterName.MatchString(p.FromState), at+".fromState", "%q is no name of a value in the state", shorten(p.FromState))
	}
}

// Whole is the parameter's pattern, anchored so that it matches only the whole
// value; "" when it has none.
func (p Parameter) Whole() string {
	if p.Pattern == "" {
		return ""
	}
	return `\A(?:` + p.Pattern + `)\z`
}
