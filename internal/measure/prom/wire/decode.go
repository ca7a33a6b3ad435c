package wire

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	jsoniter "github.com/json-iterator/go"
	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// annotations are the markers with which the PromQL engine prefixes its own
// remarks on a query (naming, histogram shapes). They say nothing about missing
// data; every other warning does, or may (thanos #7354 for the mix-up).
var annotations = [...]string{"PromQL info: ", "PromQL warning: "}

// maxNotes bounds what is kept of the remarks on one answer.
const maxNotes = 16

func readSuccess(status int, header http.Header, body []byte) Answer {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	switch {
	case len(trimmed) == 0:
		return broken(Failed, measure.SourceError, "HTTP %d with an empty body, which is no Prometheus answer", status)
	case bytes.HasPrefix(trimmed, []byte{0x1f, 0x8b}):
		return broken(Failed, measure.SourceError,
			"body is gzip without Content-Encoding: a proxy on the way drops the header")
	case trimmed[0] != '{':
		return broken(Refused, measure.SourceRefused,
			"not a Prometheus API: HTTP %d with %s: is the url right, and does it want a login?", status, describe(header, body))
	}
	d := decoder{
		it:     jsoniter.ConfigDefault.BorrowIterator(body),
		series: make([]measure.Sample, 0, min(bytes.Count(body, []byte(`"value"`)), maxGuess)),
	}
	defer jsoniter.ConfigDefault.ReturnIterator(d.it)
	d.envelope()
	return d.answer(status)
}

// maxGuess bounds what is set aside for samples before they are read.
const maxGuess = 1000

// decoder reads the documented form of an answer in one pass, without building
// a tree of it: the client's own decoding costs ten times as much.
type decoder struct {
	it *jsoniter.Iterator
	// seen are the keys of an object that stand for themselves; one that comes
	// twice could mean either.
	seen keys

	status, errorType, errorText string
	partial                      string // why the answer is partial
	notes                        []string

	resultType string
	late       []byte // a result that stands before its type
	series     []measure.Sample
	sample     measure.Sample
	fault      Answer
}

// keys is a set of known keys.
type keys uint

const (
	keyStatus keys = 1 << iota
	keyData
	keyType
	keyResult
	keyMetric
	keyValue
)

var errTwice = errors.New("a key stands twice in one object")

func (d *decoder) once(k keys) {
	if d.seen&k != 0 {
		d.fail(errTwice)
	}
	d.seen |= k
}

func (d *decoder) fail(err error) {
	if d.it.Error == nil {
		d.it.Error = err
	}
}

// envelope reads the whole body, up to its end.
func (d *decoder) envelope() {
	d.it.ReadObjectCB(func(it *jsoniter.Iterator, key string) bool {
		switch key {
		case "status":
			d.once(keyStatus)
			d.status = it.ReadString()
		case "data":
			d.once(keyData)
			d.data()
		case "errorType":
			d.errorType = text(it)
		case "error":
			d.errorText = text(it)
		case "isPartial":
			d.isPartial()
		case "warnings":
			d.remarks(d.warning)
		case "infos":
			d.remarks(d.note)
		default:
			it.Skip()
		}
		return it.Error == nil
	})
	if d.it.Error != nil {
		return
	}
	if d.it.WhatIsNext(); !errors.Is(d.it.Error, io.EOF) {
		d.it.Error = errors.New("something follows the answer")
		return
	}
	d.it.Error = nil
}

// text reads a string, and takes a number for one: an errorType has been both.
func text(it *jsoniter.Iterator) string {
	switch it.WhatIsNext() {
	case jsoniter.StringValue:
		return it.ReadString()
	case jsoniter.NumberValue:
		return string(it.ReadNumber())
	}
	it.Skip()
	return ""
}

// isPartial is VictoriaMetrics' mark of an incomplete answer, which Prometheus'
// own clients ignore (VictoriaMetrics #4721). Anything but a plain false leaves
// it open whether the answer is whole.
func (d *decoder) isPartial() {
	switch d.it.WhatIsNext() {
	case jsoniter.NilValue:
		d.it.Skip()
		return
	case jsoniter.BoolValue:
		if !d.it.ReadBool() {
			return
		}
	default:
		d.it.Skip()
	}
	d.partial = "isPartial: the source says that its answer is incomplete"
}

func (d *decoder) remarks(take func(string)) {
	d.it.ReadArrayCB(func(it *jsoniter.Iterator) bool {
		take(it.ReadString())
		return it.Error == nil
	})
}

func (d *decoder) warning(w string) {
	for _, a := range annotations {
		if strings.HasPrefix(w, a) {
			d.note(w)
			return
		}
	}
	if d.partial == "" {
		d.partial = "warning: " + w
	}
}

func (d *decoder) note(n string) {
	if len(d.notes) < maxNotes {
		d.notes = append(d.notes, n)
	}
}

func (d *decoder) data() {
	d.it.ReadObjectCB(func(it *jsoniter.Iterator, key string) bool {
		switch key {
		case "resultType":
			d.once(keyType)
			d.resultType = it.ReadString()
		case "result":
			d.once(keyResult)
			if d.resultType == "" {
				d.late = it.SkipAndReturnBytes()
				break
			}
			d.result()
		default:
			it.Skip()
		}
		return it.Error == nil
	})
	if d.late == nil || d.it.Error != nil {
		return
	}
	outer := d.it
	d.it = jsoniter.ConfigDefault.BorrowIterator(d.late)
	d.result()
	if err := d.it.Error; err != nil && !errors.Is(err, io.EOF) {
		outer.Error = err
	}
	jsoniter.ConfigDefault.ReturnIterator(d.it)
	d.it = outer
}

func (d *decoder) result() {
	if d.it.WhatIsNext() == jsoniter.NilValue {
		d.it.Skip()
		d.fault = broken(Failed, measure.SourceError, "the answer holds no data")
		return
	}
	switch d.resultType {
	case "vector":
		d.vector()
	case "scalar":
		d.sample = measure.Sample{}
		d.value()
		d.series = append(d.series, d.sample)
	case "matrix", "string":
		d.it.Skip()
		d.fault = broken(Unusable, measure.NotAVector, "returned a %s, want a vector of one", d.resultType)
	default:
		d.it.Skip()
		d.fault = broken(Unusable, measure.SourceError, "returned a result of the unknown type '%s'", d.resultType)
	}
}

func (d *decoder) vector() {
	field := d.sampleField
	d.it.ReadArrayCB(func(it *jsoniter.Iterator) bool {
		if it.WhatIsNext() != jsoniter.ObjectValue {
			d.fail(errors.New("a sample is no object"))
			return false
		}
		d.sample = measure.Sample{}
		d.seen &^= keyMetric | keyValue
		it.ReadObjectCB(field)
		if d.seen&keyValue == 0 {
			d.fail(errors.New("a sample has no value"))
		}
		d.series = append(d.series, d.sample)
		return it.Error == nil
	})
}

func (d *decoder) sampleField(it *jsoniter.Iterator, key string) bool {
	switch key {
	case "metric":
		d.once(keyMetric)
		it.ReadMapCB(d.label)
	case "value":
		d.once(keyValue)
		d.value()
	case "histogram":
		d.once(keyValue)
		d.histogram()
	default:
		it.Skip()
	}
	return it.Error == nil
}

func (d *decoder) label(it *jsoniter.Iterator, name string) bool {
	if d.sample.Metric == nil {
		d.sample.Metric = make(model.Metric, 1)
	}
	if _, twice := d.sample.Metric[model.LabelName(name)]; twice {
		d.fail(errTwice)
	}
	d.sample.Metric[model.LabelName(name)] = model.LabelValue(it.ReadString())
	return it.Error == nil
}

// value reads [seconds, "value"]. A number that cannot be held is an infinity,
// and spoils only its own series.
func (d *decoder) value() {
	d.first()
	if !d.it.ReadArray() {
		d.fail(errors.New("a value has no number"))
		return
	}
	v, err := strconv.ParseFloat(d.it.ReadString(), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		d.fail(errors.New("a value is no number"))
	}
	d.sample.Value = v
	d.last()
}

// histogram reads [seconds, {…}], whose second half no count is made of.
func (d *decoder) histogram() {
	d.first()
	if !d.it.ReadArray() {
		d.fail(errors.New("a histogram is empty"))
		return
	}
	d.it.Skip()
	d.sample.Histogram = true
	d.last()
}

// first reads the time of a sample, and last the end of it.
func (d *decoder) first() {
	if d.it.WhatIsNext() != jsoniter.ArrayValue || !d.it.ReadArray() {
		d.fail(errors.New("a value has no time"))
		return
	}
	ms := math.Round(d.it.ReadFloat64() * 1000)
	if math.IsNaN(ms) || math.Abs(ms) > latest {
		d.fail(errors.New("the time of a value is out of range"))
		return
	}
	d.sample.At = time.UnixMilli(int64(ms)).UTC()
}

// latest is the last second of the year 9999 in milliseconds.
const latest = 253402300799e3

func (d *decoder) last() {
	if d.it.Error == nil && d.it.ReadArray() {
		d.fail(errors.New("a value has more than time and number"))
	}
}

// answer is what the whole body says.
func (d *decoder) answer(status int) Answer {
	switch {
	case d.it.Error != nil:
		// The decoder's own words quote the body.
		return broken(Failed, measure.SourceError, "HTTP %d with JSON that is cut off or no Prometheus answer", status)
	case d.status == "error":
		return broken(Failed, measure.SourceError, "HTTP %d with an error, %s: %s", status, d.errorType, d.errorText)
	case d.status != "success":
		return broken(Refused, measure.SourceRefused,
			"not a Prometheus API: HTTP %d with JSON whose status is '%s': is the url right?", status, d.status)
	case d.partial != "":
		return broken(Unusable, measure.Partial, "%s", d.partial)
	case d.fault.Fault.Is():
		return d.fault
	case d.seen&keyResult == 0 || d.seen&keyType == 0:
		return broken(Failed, measure.SourceError, "the answer holds no data")
	}
	return Answer{Series: d.series, Notes: d.notes}
}
