package terms

import "errors"

// MayBeUnknown reports whether the lints know that a field of the input may be
// the word for what is not known. A step * is each element.
func MayBeUnknown(path []string) (bool, error) {
	s, err := inputShape()
	for _, step := range path {
		switch {
		case s == nil:
			return false, errors.Join(err, errors.New("no such field"))
		case step == "*":
			s = s.items
		default:
			s = s.fields[step].Shape
		}
	}
	return s.Unknown(), err
}
