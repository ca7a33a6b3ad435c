package propose

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// maxShownValue is the longest value of a label that may be shown, in bytes.
const maxShownValue = 64

// register hands out the placeholders of one evidence. One value of one label
// has one placeholder throughout, so that a value in a breakdown, the same one
// in a change and the same one in a live state can be told to be the same.
type register struct {
	// catalogue are the words that the catalogue shows in this pass: they are
	// permitted values, hence known to whoever is asked.
	catalogue map[string]bool
	// shown are the labels that some evidence query of the document lists in
	// showValues.
	shown map[string]bool
	// prefixes are all that a placeholder may begin with: a value of that shape
	// would pass for one.
	prefixes map[string]bool
	ids      map[labelValue]string
	last     map[string]int
}

type labelValue struct{ label, value string }

// otherLabel stands for the name of a label that is no plain word.
const otherLabel = "label"

func newRegister(r Request) *register {
	n := &register{
		catalogue: map[string]bool{}, shown: map[string]bool{},
		prefixes: map[string]bool{otherLabel: true, versionLabel: true},
		ids:      map[labelValue]string{}, last: map[string]int{},
	}
	for _, e := range r.Service.Remediation.Evidence {
		for _, label := range e.Labels {
			n.prefixes[label] = true
		}
		for _, label := range e.ShowValues {
			n.shown[label] = true
		}
	}
	for _, o := range r.Service.Objectives {
		for _, label := range o.GroupBy {
			n.prefixes[label] = true
		}
	}
	for _, t := range r.Tried {
		for name := range t.Parameters { // An action of then need not be in the catalogue of now.
			n.prefixes[name] = true
		}
	}
	for _, it := range r.Catalogue {
		for _, d := range it.Action.Parameters {
			n.prefixes[d.Name] = true
			for _, v := range valuesShown(it, d) {
				n.catalogue[v] = true
			}
		}
	}
	return n
}

// valuesShown are the permitted values of a parameter that the catalogue lists.
func valuesShown(it Item, d spec.Parameter) []string {
	b, err := it.Bounds(d)
	if err != nil {
		return nil
	}
	shown, _ := showable(b.Values)
	return shown
}

// of gives what stands for a value of a label. Words of the catalogue stand for
// themselves, and plain words where the document lets that label be shown.
func (n *register) of(label, value string, show bool) alias {
	switch {
	case value == "":
		return alias{} // To Prometheus an empty label is an absent one.
	case n.catalogue[value]:
		return alias{value}
	case show && len(value) <= maxShownValue && plainWord(value) && !n.likePlaceholder(value):
		return alias{value}
	}
	key := labelValue{label, value}
	if id, ok := n.ids[key]; ok {
		return alias{id}
	}
	prefix := plainLabel(label)
	id := ""
	for id == "" || n.catalogue[id] {
		n.last[prefix]++
		id = prefix + "-" + strconv.Itoa(n.last[prefix])
	}
	n.ids[key] = id
	return alias{id}
}

// anywhere is of for a value that no evidence query brought: it is shown where
// any query of the document shows the label.
func (n *register) anywhere(label, value string) alias {
	return n.of(label, value, n.shown[label])
}

// likePlaceholder reports whether a value could be taken for a placeholder.
func (n *register) likePlaceholder(value string) bool {
	i := strings.LastIndexByte(value, '-')
	if i < 0 || !n.prefixes[value[:i]] {
		return false
	}
	_, err := strconv.ParseUint(value[i+1:], 10, 64)
	return err == nil
}

var plainLabelShape = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,39}$`)

// plainLabel is the name of a label as the evidence writes it.
func plainLabel(label string) string {
	if !plainLabelShape.MatchString(label) {
		return otherLabel
	}
	return label
}

// scalar gives what stands for the value of a parameter. A string goes under
// the parameter's name, as if that were a label.
func (n *register) scalar(name string, v any) scalar {
	switch v := v.(type) {
	case int64:
		return scalar{integer(v)}
	case float64:
		return scalar{exact(v)}
	case bool:
		return scalar{flag(v)}
	case string:
		return scalar{n.of(name, v, false)}
	}
	return scalar{}
}

// labels are the names of labels, in their order.
func labelsOf(names []string) []word {
	out := []word{}
	for _, name := range names {
		out = append(out, word(plainLabel(name)))
	}
	return out
}
