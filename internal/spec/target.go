package spec

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The executors of this version, as documents name them.
const (
	usesWebhook = "webhook.post"
	usesCommand = "command.run"
)

// targetKeys are what a target may hold, by executor: one that says how another
// executor is reached would be read as if it mattered.
var targetKeys = map[string][]string{
	usesWebhook: {"url", "statusURL", "secret", "dedup"},
	usesCommand: {"argv", "statusArgv"},
}

type webhookDoc struct {
	URL       string `yaml:"url,required"`
	StatusURL string `yaml:"statusURL"`
	Secret    string `yaml:"secret"`
	Dedup     bool   `yaml:"dedup"`
}

type commandDoc struct {
	Argv       []string `yaml:"argv,required"`
	StatusArgv []string `yaml:"statusArgv"`
}

// target reads the target of an executor of this version and checks it.
func (c *checker) target(at string, a *Action, v Value) {
	c.foreignKeys(a.Uses, v)
	if a.Uses == usesCommand {
		var doc commandDoc
		c.decode(v, &doc)
		c.command(at, *a, doc)
		file := v.Pos().File
		a.Target = Target{Argv: resolved(file, doc.Argv), StatusArgv: resolved(file, doc.StatusArgv)}
		return
	}
	var doc webhookDoc
	c.decode(v, &doc)
	a.Target = Target{URL: doc.URL, StatusURL: doc.StatusURL, Secret: doc.Secret, Dedup: doc.Dedup}
	c.webhook(at, a.Target)
}

// foreignKeys refuses the keys of other executors by their name.
func (c *checker) foreignKeys(uses string, v Value) {
	for key := range v.Pairs() {
		for _, other := range sortedKeys(targetKeys) {
			if other != uses && slices.Contains(targetKeys[other], key) {
				c.fault(KeyPath(v.Path(), key), "is a key of %s: the target of %s knows %s",
					other, uses, strings.Join(targetKeys[uses], ", "))
			}
		}
	}
}

// decode keeps the faults of what was not refused already.
func (c *checker) decode(v Value, into any) {
	for _, f := range v.Decode(into) {
		if !slices.ContainsFunc(c.faults, func(g Fault) bool { return g.Path == f.Path }) {
			c.faults = append(c.faults, f)
		}
	}
}

func (c *checker) webhook(at string, t Target) {
	c.url(at+".url", t.URL)
	if t.StatusURL != "" || c.doc.Has(at+".statusURL") {
		c.url(at+".statusURL", t.StatusURL)
	}
	if c.doc.Has(at + ".secret") {
		c.validName(at+".secret", t.Secret)
	}
	c.that(!t.Dedup || t.StatusURL != "", at+".dedup",
		"needs statusURL: a lost effect of an actuator that only deduplicates could never be looked up")
}

// CheckURL returns what keeps a URL from being a fixed place to send to.
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return fmt.Errorf("%q is no absolute URL of http or https, like http://host/path", shorten(raw))
	case u.User != nil:
		return fmt.Errorf("holds a user or password: name a secret instead")
	case u.Fragment != "" || strings.HasSuffix(raw, "#"):
		return fmt.Errorf("%q has a fragment, which is never sent: remove it", shorten(raw))
	}
	return nil
}

func (c *checker) url(path, raw string) {
	if err := CheckURL(raw); err != nil {
		c.fault(path, "%s", err)
	}
}

// command checks what is run. No shell reads it, so a placeholder is a whole
// element or nothing: inside of one it would be a language of its own.
func (c *checker) command(at string, a Action, doc commandDoc) {
	used := map[string]bool{}
	c.argv(at+".argv", doc.Argv, func(path, element string) {
		name, ok := Placeholder(element)
		switch {
		case !ok:
			c.partial(path, element)
		case !slices.ContainsFunc(a.Parameters, func(p Parameter) bool { return p.Name == name }):
			c.fault(path, "names no parameter of this action, %s", didYouMean(name, parameterNames(a)))
		default:
			used[name] = true
		}
	})
	if doc.StatusArgv != nil || c.doc.Has(at+".statusArgv") {
		c.argv(at+".statusArgv", doc.StatusArgv, func(path, element string) {
			if _, ok := Placeholder(element); ok {
				c.fault(path, "holds a placeholder, and the state is asked for before any parameter is known: remove it; the key is in SETPOINT_KEY")
				return
			}
			c.partial(path, element)
		})
	}
	actionAt, _ := strings.CutSuffix(at, ".target")
	for _, p := range a.Parameters {
		path := KeyPath(actionAt+".parameters", p.Name)
		c.that(used[p.Name] || doc.Argv == nil, path, "never reaches the program: no element of target.argv is ${parameters.%s}", shorten(p.Name))
		c.noOption(path, p)
	}
}

// argv checks the elements of a program with its arguments.
func (c *checker) argv(path string, argv []string, placeholder func(path, element string)) {
	c.that(len(argv) > 0 || !c.doc.Has(path), path, "is empty: name the program and its arguments, like [./restart.sh]")
	for i, element := range argv {
		at := IndexPath(path, i)
		switch {
		case strings.ContainsRune(element, 0):
			c.fault(at, "holds a NUL byte, which ends an argument")
		case i == 0 && strings.Contains(element, "${"):
			c.fault(at, "is the program, which is fixed: a placeholder stands for an argument")
		case i == 0 && (element == "" || strings.HasSuffix(element, "/")):
			c.fault(at, "%q is no program: name its file, like ./restart.sh", shorten(element))
		case strings.Contains(element, "${"):
			placeholder(at, element)
		}
	}
}

func (c *checker) partial(path, element string) {
	c.fault(path, "%q is neither plain text nor a placeholder: a placeholder is a whole element, like \"${parameters.replicas}\"", shorten(element))
}

// noOption refuses bounds whose values would all be refused at the send: a
// program reads what begins with a dash as an option. What a pattern matches
// is looked at there.
func (c *checker) noOption(path string, p Parameter) {
	const text = "%s begins with '-', which programs read as an option, so it is refused at the send: %s"
	for i, v := range p.Enum {
		c.that(!strings.HasPrefix(v, "-"), IndexPath(path+".enum", i), text, strconv.Quote(shorten(v)), "remove it")
	}
	if p.Minimum != nil && *p.Minimum < 0 {
		c.fault(path+".minimum", text, strconv.FormatFloat(*p.Minimum, 'g', -1, 64), "want 0 or more")
	}
}

func parameterNames(a Action) []string {
	var names []string
	for _, p := range a.Parameters {
		names = append(names, p.Name)
	}
	return names
}

var placeholderForm = regexp.MustCompile(`\A\$\{parameters\.([A-Za-z][A-Za-z0-9_-]{0,62})\}\z`)

// Placeholder returns the parameter that an element of an argv stands for.
func Placeholder(element string) (parameter string, ok bool) {
	m := placeholderForm.FindStringSubmatch(element)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// resolved is an argv whose program is found from the file that names it. A
// name without a slash is a file beside it too: nothing is searched in PATH.
func resolved(file string, argv []string) []string {
	out := slices.Clone(argv)
	if len(out) == 0 || out[0] == "" {
		return out
	}
	if filepath.IsAbs(out[0]) {
		out[0] = filepath.Clean(out[0])
	} else {
		out[0] = filepath.Join(filepath.Dir(file), out[0])
	}
	return out
}

// commandTarget names what a command acts on: its program and the arguments
// that are not parameters. An element that could be read as two is quoted.
func commandTarget(argv []string) string {
	words := []string{"command"}
	for _, element := range argv {
		if _, ok := Placeholder(element); ok {
			continue
		}
		if quoted := strconv.Quote(element); element == "" || strings.ContainsRune(element, ' ') || quoted != `"`+element+`"` {
			element = quoted
		}
		words = append(words, element)
	}
	return strings.Join(words, " ")
}
