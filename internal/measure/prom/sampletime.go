package prom

import (
	"math"
	"strconv"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// latestTime is the last second of the year 9999; nothing later is a time.
const latestTime = 253402300799

// sampleTime reads the value of a reading as the time of a sample.
func sampleTime(r reading) reading {
	switch {
	case r.reason == measure.NoData:
		r.detail = "no sample of the series is fresh enough to be seen"
		r.at = time.Time{}
	case r.reason != "":
		r.at = time.Time{}
	case r.value <= 0 || r.value > latestTime:
		return reading{reason: measure.NotFinite, detail: formatValue(r.value) + " is no time", notes: r.notes}
	default:
		r.at = time.UnixMilli(int64(math.Round(r.value * 1000))).UTC()
	}
	return r
}

func formatValue(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
