package spec

// ObjectMeta is the metadata of every Kubernetes object, for the readers of
// formats that are custom resources. What the server adds to it is read and says
// nothing.
type ObjectMeta struct {
	Name                       string            `yaml:"name,required"`
	GenerateName               Value             `yaml:"generateName"`
	Namespace                  string            `yaml:"namespace"`
	Labels                     map[string]string `yaml:"labels"`
	Annotations                map[string]string `yaml:"annotations"`
	CreationTimestamp          Value             `yaml:"creationTimestamp"`
	DeletionTimestamp          Value             `yaml:"deletionTimestamp"`
	DeletionGracePeriodSeconds Value             `yaml:"deletionGracePeriodSeconds"`
	Finalizers                 Value             `yaml:"finalizers"`
	Generation                 Value             `yaml:"generation"`
	ManagedFields              Value             `yaml:"managedFields"`
	OwnerReferences            Value             `yaml:"ownerReferences"`
	ResourceVersion            Value             `yaml:"resourceVersion"`
	SelfLink                   Value             `yaml:"selfLink"`
	UID                        Value             `yaml:"uid"`
}
