// Package shipped holds the tests of the policy that ships, the folder policies
// at the root of the repository: a folder that authors copy should hold nothing
// but policy. It takes that folder, as it stands and as it is built into the
// agent, and exports nothing.
package shipped
