package main

import (
	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

func (a *app) policySchemaCommand() *cobra.Command {
	var output string
	var example bool
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of what policy sees, or an example of it",
		Long: `Print the JSON Schema of what policy sees as "input", for editors and for OPA's own
tools. "setpoint policy check" uses it by itself.`,
		Example: `  setpoint policy schema > input.schema.json
  opa check --strict -s input.schema.json policies/
  setpoint policy schema --example > input.json   # a complete input to start from`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if example {
				return a.print("%s", gate.ExampleInput())
			}
			schema, err := gate.SchemaJSON()
			if err != nil {
				return err
			}
			return a.print("%s", schema)
		},
	}
	cmd.Flags().BoolVar(&example, "example", false, "print a complete example input instead")
	outputFlag(cmd, &output, formatJSON)
	return cmd
}
