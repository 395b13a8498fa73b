"""Small general solvers for conic and quadratic programs."""
