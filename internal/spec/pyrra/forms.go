package pyrra

import "github.com/setpoint-dev/setpoint/internal/spec"

// document is Pyrra's Kubernetes resource.
type document struct {
	APIVersion string          `yaml:"apiVersion"`
	Kind       string          `yaml:"kind"`
	Metadata   spec.ObjectMeta `yaml:"metadata,required"`
	Spec       objective       `yaml:"spec,required"`
	Status     spec.Value      `yaml:"status"`
}

type objective struct {
	Description             string     `yaml:"description"`
	Target                  string     `yaml:"target,required"`
	Window                  string     `yaml:"window,required"`
	Indicator               indicator  `yaml:"indicator,required"`
	Alerting                alerting   `yaml:"alerting"`
	PartialResponseStrategy string     `yaml:"partial_response_strategy"`
	PerformanceOverAccuracy bool       `yaml:"performanceOverAccuracy"`
	RuleOutput              spec.Value `yaml:"ruleOutput"`
}

// indicator holds one of the four.
type indicator struct {
	Ratio         *ratio     `yaml:"ratio"`
	Latency       *latency   `yaml:"latency"`
	LatencyNative spec.Value `yaml:"latencyNative"`
	BoolGauge     *boolGauge `yaml:"bool_gauge"`
}

type ratio struct {
	Errors   metric   `yaml:"errors,required"`
	Total    metric   `yaml:"total,required"`
	Grouping []string `yaml:"grouping"`
}

type latency struct {
	Success  metric   `yaml:"success,required"`
	Total    metric   `yaml:"total,required"`
	Grouping []string `yaml:"grouping"`
}

type boolGauge struct {
	Metric   string   `yaml:"metric,required"`
	Grouping []string `yaml:"grouping"`
}

type metric struct {
	Metric string `yaml:"metric,required"`
}

type alerting struct {
	Disabled   *bool             `yaml:"disabled"`
	Burnrates  *bool             `yaml:"burnrates"`
	Absent     *bool             `yaml:"absent"`
	Name       string            `yaml:"name"`
	AbsentName string            `yaml:"absentName"`
	Severities map[string]string `yaml:"severities"`
}
