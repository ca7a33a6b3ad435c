package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"
)

// bodyError says what is wrong with a body that was to be read into a value, in
// words of the body: whoever posts it does not know the types behind it.
func bodyError(err error, into any) error {
	var tooLong *http.MaxBytesError
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &tooLong):
		return &Error{Status: http.StatusRequestEntityTooLarge, Code: "too-large", Message: fmt.Sprintf("the body exceeds %d bytes", tooLong.Limit)}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return bad("body: the JSON ends before it is complete")
	case errors.Is(err, io.EOF):
		return bad("the body is empty; send a JSON object")
	case errors.As(err, &kind):
		return bad("%s: must be %s", cmp.Or(kind.Field, "body"), kindWord(kind.Type))
	case errors.As(err, &syntax):
		return bad("body: is no JSON: %s at byte %d", syntax, syntax.Offset)
	case isTimeError(err):
		return bad("%s: must be a time like 2026-11-29T12:00:00Z", cmp.Or(timeKey(reflect.TypeOf(into)), "body"))
	}
	return bad("body: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// kindWord is what JSON calls a type.
func kindWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "a number"
	}
}

// isTimeError reports an error of time.Time, which has no type of its own where
// the value is no string.
func isTimeError(err error) bool {
	var layout *time.ParseError
	return errors.As(err, &layout) || strings.Contains(err.Error(), "Time.UnmarshalJSON")
}

// timeKey is the key of the one time that a body has: an error of a time does not
// say where it stands.
func timeKey(t reflect.Type) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return ""
	}
	for _, f := range reflect.VisibleFields(t) {
		if f.Type == reflect.TypeFor[time.Time]() {
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return key
		}
	}
	return ""
}
