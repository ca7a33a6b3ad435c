package rego

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/util"
)

// readData merges the data files of a bundle, each below its folder, and
// refuses what would let data grant or hide something: then there is no data.
func readData(files []File) (map[string]any, []Finding) {
	root := map[string]any{}
	var fs []Finding
	for _, f := range files {
		fail := func(line int, text string) {
			fs = append(fs, Finding{File: f.Path, Line: line, Code: CodeData, Text: text})
		}
		if line, err := readable(f.Data); err != nil {
			fail(line, err.Error())
			continue
		}
		var doc map[string]any
		if err := util.Unmarshal(f.Data, &doc); err != nil {
			fail(1, "not one JSON or YAML object: "+err.Error())
			continue
		}
		if p := firstNull(doc, nil); p != nil {
			fail(lineOf(f.Data, p), p.String()+" is null, which sorts below every number; leave it out or give a value")
			continue
		}
		if err := merge(root, folder(f.Path), doc); err != nil {
			fail(0, err.Error())
		}
	}
	if fs = append(fs, ownedKeys(files, root)...); len(fs) > 0 {
		return nil, fs
	}
	return root, nil
}

// ownedKeys are the keys of data that mean something by themselves: that of the
// packages, and exceptions, which must end.
func ownedKeys(files []File, root map[string]any) []Finding {
	var fs []Finding
	fail := func(p dataPath, text string, args ...any) {
		f := Finding{Code: CodeData, Text: fmt.Sprintf(text, args...)}
		f.File, f.Line = sourceOf(files, p)
		fs = append(fs, f)
	}
	if _, ok := root["setpoint"]; ok {
		fail(dataPath{"setpoint"}, "data has the key setpoint, which is reserved for packages: data cannot grant")
	}
	list, ok := root["exceptions"].([]any)
	if _, present := root["exceptions"]; present && !ok {
		fail(dataPath{"exceptions"}, "data.exceptions must be a list of objects with until")
	}
	for i, e := range list {
		// An exception for ever is a rule, and belongs where rules are read.
		o, ok := e.(map[string]any)
		until, _ := o["until"].(string)
		if _, err := time.Parse(time.RFC3339, until); !ok || err != nil {
			fail(dataPath{"exceptions", i}, "data.exceptions[%d] has no until as an RFC 3339 time", i)
		}
	}
	return fs
}

func folder(p string) []string {
	dir := path.Dir(p)
	if dir == "." {
		return nil
	}
	return strings.Split(dir, "/")
}

func merge(root map[string]any, at []string, doc map[string]any) error {
	for _, name := range at {
		next, ok := root[name].(map[string]any)
		if !ok {
			if _, taken := root[name]; taken {
				return fmt.Errorf("folder %s and a value of that name are both in data", name)
			}
			next = map[string]any{}
			root[name] = next
		}
		root = next
	}
	return mergeObjects(root, doc)
}

func mergeObjects(into, from map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(from)) {
		old, taken := into[name]
		a, aok := old.(map[string]any)
		b, bok := from[name].(map[string]any)
		switch {
		case !taken:
			into[name] = from[name]
		case aok && bok:
			if err := mergeObjects(a, b); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s is in data twice", name)
		}
	}
	return nil
}

// firstNull is the path of the first null below v, or nil.
func firstNull(v any, at dataPath) dataPath {
	switch v := v.(type) {
	case nil:
		return at
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if p := firstNull(v[k], append(at[:len(at):len(at)], k)); p != nil {
				return p
			}
		}
	case []any:
		for i, e := range v {
			if p := firstNull(e, append(at[:len(at):len(at)], i)); p != nil {
				return p
			}
		}
	}
	return nil
}
