package propose

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

const templateEnd = ".tmpl"

// checkFolder refuses a template that nothing reads: under a name with a slip of
// the keyboard it would be left out in silence, and other words be sent.
func checkFolder(files fs.FS) error {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return fmt.Errorf("read the folder of prompts: %w", err)
	}
	known := []string{systemID + templateEnd, userID + templateEnd, repairID + templateEnd}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, templateEnd) || strings.HasPrefix(name, ".") || slices.Contains(known, name) {
			continue
		}
		hint := "known are " + strings.Join(known, ", ")
		if near := spec.Nearest(name, known); near != "" {
			hint = "did you mean " + near + "?"
		}
		return fmt.Errorf("prompt %s: nothing reads a template of this name; %s", name, hint)
	}
	return nil
}

// dataOf is what each template is given.
var dataOf = map[string]reflect.Type{
	systemID: reflect.TypeFor[promptData](), userID: reflect.TypeFor[promptData](), repairID: reflect.TypeFor[repairData](),
}

// inputsKnown are the inputs that a template can use, sorted.
func inputsKnown(id string) []string {
	var out []string
	for _, f := range reflect.VisibleFields(dataOf[id]) {
		out = append(out, f.Name)
	}
	slices.Sort(out)
	return out
}

// unknownInput is the first use of an input that there is not, also in a branch
// that the one rendering at the start does not take; nil: there is none.
func (f *promptFile) unknownInput(used map[string]parse.Pos, text string) error {
	known, first := inputsKnown(f.id), ""
	for name, at := range used {
		if !slices.Contains(known, name) && (first == "" || at < used[first]) {
			first = name
		}
	}
	if first == "" {
		return nil
	}
	hint := ""
	if near := spec.Nearest(first, known); near != "" {
		hint = fmt.Sprintf(", did you mean %s?", near)
	}
	line := f.before + 1 + strings.Count(text[:min(len(text), int(used[first]))], "\n")
	return fmt.Errorf("prompt %s:%d: unknown input %s%s; known are %s", f.id+templateEnd, line, first, hint, strings.Join(known, ", "))
}

var (
	// placed is how text/template begins its errors.
	placed  = regexp.MustCompile(`^template: ([^:]+):(\d+)(?::\d+)?: (?:executing "[^"]*" at )?`)
	noField = regexp.MustCompile(`can't evaluate field (\w+) in type \S+`)
	ofOurs  = regexp.MustCompile(`\*?propose\.(?:promptData|repairData)\b`)
)

// fault is an error of text/template in the words of whoever wrote the file: with
// the line of the whole file, and without the types that it is made of.
func (f *promptFile) fault(err error) error {
	text := err.Error()
	where := "prompt " + f.id + templateEnd
	if m := placed.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[2]) // The expression has digits only.
		where = fmt.Sprintf("prompt %s:%d", m[1], f.before+line)
		text = text[len(m[0]):]
	}
	text = noField.ReplaceAllString(text, "there is no field $1; the inputs are "+strings.Join(inputsKnown(f.id), ", ")+", and none has fields")
	text = ofOurs.ReplaceAllString(text, "all inputs")
	text = strings.ReplaceAll(text, "[]string", "a list of texts")
	return errors.New(where + ": " + text)
}
