package pyrra

import "github.com/setpoint-dev/setpoint/internal/spec"

// document is Pyrra's Kubernetes resource.
type document struct {
	APIVersion string     `yaml:"apiVersion"`
	Kind       string     `yaml:"kind"`
	Metadata   metadata   `yaml:"metadata,required"`
	Spec       objective  `yaml:"spec,required"`
	Status     spec.Value `yaml:"status"`
}

// metadata is that of every Kubernetes object. What the server adds to it is
// read and says nothing here.
type metadata struct {
	Name                       string            `yaml:"name,required"`
	GenerateName               spec.Value        `yaml:"generateName"`
	Namespace                  string            `yaml:"namespace"`
	Labels                     map[string]string `yaml:"labels"`
	Annotations                map[string]string `yaml:"annotations"`
	CreationTimestamp          spec.Value        `yaml:"creationTimestamp"`
	DeletionTimestamp          spec.Value        `yaml:"deletionTimestamp"`
	DeletionGracePeriodSeconds spec.Value        `yaml:"deletionGracePeriodSeconds"`
	Finalizers                 spec.Value        `yaml:"finalizers"`
	Generation                 spec.Value        `yaml:"generation"`
	ManagedFields              spec.Value        `yaml:"managedFields"`
	OwnerReferences            spec.Value        `yaml:"ownerReferences"`
	ResourceVersion            spec.Value        `yaml:"resourceVersion"`
	SelfLink                   spec.Value        `yaml:"selfLink"`
	UID                        spec.Value        `yaml:"uid"`
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
