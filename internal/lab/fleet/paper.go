package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/spec/openslo"
)

// perFile is how many SLOs stand in one file, which may not be too long.
const perFile = 500

// slo is one SLO over a counter of requests.
const slo = `---
apiVersion: openslo/v1
kind: SLO
metadata: {name: %[1]s-availability}
spec:
  service: %[1]s
  indicator:
    metadata: {name: %[1]s-success}
    spec:
      ratioMetric:
        counter: true
        good: {metricSource: {type: Prometheus, spec: {query: '%[2]s{service="%[1]s",code!~"5.."}'}}}
        total: {metricSource: {type: Prometheus, spec: {query: '%[2]s{service="%[1]s"}'}}}
  timeWindow: [{duration: %[3]s, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: %[4]s}]
`

// remediation is only there to replace the burn rates.
const remediation = `---
apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: %[1]s}
spec:
  service: %[1]s
  objectives: {%[1]s-availability: {burnRates: [%[2]s]}}
`

// Documents are the SLOs of the fleet as OpenSLO, one for each service, and
// what a Remediation must say beside them.
func (o Options) Documents() []spec.File {
	o = o.withDefaults()
	var out []spec.File
	var b strings.Builder
	for i := range o.Services {
		b.WriteString(o.document(i))
		if i%perFile == perFile-1 || i == o.Services-1 {
			name := fmt.Sprintf("fleet-%03d.yaml", i/perFile)
			out = append(out, spec.File{Name: name, Data: []byte(b.String())})
			b.Reset()
		}
	}
	return out
}

func (o Options) document(i int) string {
	target := strconv.FormatFloat(o.Target, 'f', -1, 64)
	text := fmt.Sprintf(slo, Name(i), o.Metric(i), model.Duration(o.Period), target)
	var rates []string
	for _, r := range o.BurnRates {
		rates = append(rates, fmt.Sprintf("{short: %s, long: %s, factor: %s, page: %t}",
			model.Duration(r.Short), model.Duration(r.Long), strconv.FormatFloat(r.Factor, 'f', -1, 64), r.Page))
	}
	if len(rates) > 0 {
		text += fmt.Sprintf(remediation, Name(i), strings.Join(rates, ", "))
	}
	return text
}

// Set loads the documents, as the agent would.
func (o Options) Set() (spec.Set, error) {
	set, err := spec.Load(o.Documents(), []spec.Reader{openslo.Reader{}})
	if err != nil {
		return spec.Set{}, fmt.Errorf("fleet: %w", err)
	}
	return set, nil
}

// Write writes the documents into a folder that exists.
func (o Options) Write(dir string) error {
	for _, d := range o.Documents() {
		if err := os.WriteFile(filepath.Join(dir, d.Name), d.Data, 0o600); err != nil {
			return fmt.Errorf("fleet: %w", err)
		}
	}
	return nil
}
