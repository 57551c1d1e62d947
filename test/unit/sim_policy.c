/*-------------------------------------------------------------------------
 *
 * sim_policy.c
 *		The simulation of the sync policy (bench/policy), a sample of its cells.
 *
 * Exits with 1 when adaptive loses to batch or to the best fixed window in a cell
 * where it must not.  Virtual time: no machine's speed matters.
 *
 *-------------------------------------------------------------------------
 */
extern int	policy_sim_main(int argc, char **argv);

#define main policy_sim_main
#include "../../bench/policy/simulate.c"
#include "../../bench/policy/policy_sim.c"
#undef main

int
main(void)
{
	char	   *arguments[] = {"sim_policy", "--quick", NULL};

	return policy_sim_main(2, arguments);
}
