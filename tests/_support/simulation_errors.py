"""Errors of simulations: their messages, and code that raises them."""

from retrykit import Hedge, Policy, Rule
from retrykit.budgets import Budget, FleetBudget
from retrykit.limits import Adapted, CircuitBreaker, RateLimit
from retrykit.schedules import exponential
from retrykit.simulate import (
    Clients,
    Outage,
    Server,
    Users,
    basin,
    contend,
    simulate,
    simulation_of,
    smallest_change,
)

__all__ = ["ERRORS"]


class NeedsResponse:
    """A predicate, or a hint, that reads the response of an error."""

    def __call__(self, error):
        return error.response.status_code == 503

    def __repr__(self):
        return "needs_response"


class AsyncBudget(Budget):
    balance = 1.0

    async def withdraw(self, error, /):
        return 1.0

    async def deposit(self, cost, /):
        pass

    def __repr__(self):
        return "AsyncBudget()"


class ConnectedBudget(Budget):
    balance = 1.0

    def withdraw(self, error, /):
        return 1.0

    def deposit(self, cost, /):
        pass

    def __deepcopy__(self, memo):
        raise TypeError

    def __repr__(self):
        return "ConnectedBudget()"


class Semaphore:
    """A semaphore of another library."""

    def acquire(self):
        pass

    def __repr__(self):
        return "<unlocked semaphore>"


NEEDS_RESPONSE = NeedsResponse()

ERRORS = {
    'load must be a share of the capacity above 0 and below 1, such as "70%", '
    "got '100%'; from 100 % on, the queue grows without an "
    "outage": lambda: simulate(Policy(), load="100%"),
    'load must be a share of the capacity above 0 and below 1, such as "70%", '
    "got 'x%'; from 100 % on, the queue grows without an outage": lambda: simulate(
        Policy(), load="x%"
    ),
    'load must be a share of the capacity above 0 and below 1, such as "70%", '
    "got '70'; from 100 % on, the queue grows without an outage": lambda: simulate(
        Policy(), load="70"
    ),
    'load must be a share of the capacity above 0 and below 1, such as "70%", '
    "got True; from 100 % on, the queue grows without an outage": lambda: simulate(
        Policy(), load=True
    ),
    'load must be a share of the capacity above 0 and below 1, such as "70%", '
    "got None; from 100 % on, the queue grows without an outage": lambda: simulate(
        Policy(), load=None
    ),
    'load must be a share of the capacity above 0 and below 1, such as "70%", '
    "got b'70%'; from 100 % on, the queue grows without an outage": lambda: simulate(
        Policy(), load=b"70%"
    ),
    "load must be below the capacity of the server, 100 calls per second, got "
    "Users(number=300, think=2.0); it has on average 150: a queue without an "
    "outage would grow; give the server more capacity": lambda: simulate(
        Policy(), load=Users(300)
    ),
    "load must be times in ascending order, so >= 0.001 here, got 0; sort "
    "them": lambda: simulate(Policy(), load=[0, 0.001] * 2),
    "load must be below the capacity of the server, 1 calls per second, got "
    "[0.5, 0.6]; it has on average 2: a queue without an outage would grow; "
    "give the server more capacity": lambda: simulate(
        Policy(), load=[0.5, 0.6], server=Server(1)
    ),
    "load must be one time of a call or more, got []": lambda: simulate(
        Policy(), load=[]
    ),
    "times of load must be a finite number >= 0, got 'a'; they are in "
    "seconds": lambda: simulate(Policy(), load=["a"]),
    "times of load must be a finite number >= 0, got -1; they are in seconds": lambda: (
        simulate(Policy(), load=[-1])
    ),
    "duration must be a duration > 0, got '0s'": lambda: simulate(
        Policy(), outage="0s"
    ),
    'duration must be a duration such as "12.5s", "500ms" or "1h30m", got '
    "'soon'; write the unit (us, ms, s, m, h, d, w)": lambda: simulate(
        Policy(), outage="soon"
    ),
    "horizon must be a duration from 10 s to 1,000,000 s, got '5s'": lambda: simulate(
        Policy(), horizon="5s"
    ),
    "horizon must be a finite number >= 0, got -1": lambda: simulate(
        Policy(), horizon=-1
    ),
    "network must be a duration from 1 us to 1,000,000 s, as an attempt takes some "
    "time, got 0": lambda: simulate(Policy(), network=0),
    'network must be a duration such as "12.5s", "500ms" or "1h30m", got \'1\'; '
    "write the unit (us, ms, s, m, h, d, w)": lambda: simulate(Policy(), network="1"),
    "seed must be an integer >= 0, got -3": lambda: simulate(Policy(), seed=-3),
    "server must be a Server, or a list of servers and, between each two, "
    "Clients, got 100; write server=[Server(...), Clients(policy), "
    "Server(...)]": lambda: simulate(Policy(), server=100),
    "late_answers must be True or False, got 1": lambda: simulate(
        Policy(), late_answers=1
    ),
    "policy must be a Policy, Clients, or a list of Clients, got 5": lambda: simulate(
        5
    ),
    "policy must be a Policy, Clients, or a list of Clients, got []": lambda: simulate(
        []
    ),
    "policy must be a Policy, Clients, or a list of Clients, got [5]": lambda: simulate(
        [5]
    ),
    "errors must be a dict of errors by their names, got 5": lambda: simulate(
        Policy(), errors=5
    ),
    "errors must be a dict with the keys 'timeout', 'refused', 'unavailable', "
    "'failed_call', got 'timeouts'; did you mean timeout?": lambda: simulate(
        Policy(), errors={"timeouts": OSError()}
    ),
    "errors['timeout'] must be an Exception, got 5": lambda: simulate(
        Policy(), errors={"timeout": 5}
    ),
    "capacity must be a finite number >= 0.001 and <= 1e+06, got 0": lambda: Server(0),
    "slots must be an integer >= 1, got 0": lambda: Server(slots=0),
    "slots must be an integer >= 1 and <= 1000000, got 1000001": lambda: Server(
        slots=1_000_001
    ),
    "service must be one of 'constant', 'exponential', got 'slow'": lambda: Server(
        service="slow"
    ),
    "order must be one of 'oldest_first', 'newest_first', got 'lifo'": lambda: Server(
        order="lifo"
    ),
    "drops must be one of 'nothing', 'abandoned', 'late', got 'all'": lambda: Server(
        drops="all"
    ),
    "queue_bound must be the time of one request or more, 0.01 s, got '1ms'": lambda: (
        Server(queue_bound="1ms")
    ),
    "queue_bound must be a finite number >= 0, got -1": lambda: Server(queue_bound=-1),
    "kind must be one of 'hang', 'refuse', 'error', got 'fail'": lambda: Outage(
        "1s", "fail"
    ),
    "share must be a number > 0 and <= 1, got 0": lambda: Outage("1s", share=0),
    "share must be a finite number >= 0 and <= 1, got 2": lambda: Outage("1s", share=2),
    "retry_after must be None where kind is 'refuse', got '1s'; only a 503 has "
    "the header: write kind='error'": lambda: Outage("1s", "refuse", retry_after="1s"),
    "retry_after must be a finite number >= 0, got -1": lambda: Outage(
        "1s", "error", retry_after=-1
    ),
    "begin must be a duration of at most 1e+06 s, got '90d'": lambda: Outage(
        "1s", begin="90d"
    ),
    "slow_start must be a finite number >= 0, got -1": (
        lambda: Outage("1s", slow_start=-1)
    ),
    "number must be an integer >= 1, got 0": lambda: Users(0),
    "think must be a duration > 0, got 0": lambda: Users(1, think=0),
    "think must be a finite number >= 0, got -1": lambda: Users(1, think=-1),
    "policy must be a Policy, got 5": lambda: Clients(5),
    "share must be a number > 0 and <= 1e+09, got 0": lambda: Clients(
        Policy(), share=0
    ),
    "share must be a finite number >= 0 and <= 1e+09, got 1e+308": lambda: Clients(
        Policy(), share=1e308
    ),
    "processes must be an integer >= 1, got 0": lambda: Clients(Policy(), processes=0),
    "timeout must be a duration > 0, got '0ms'": lambda: Clients(
        Policy(), timeout="0ms"
    ),
    "timeout must be the attempt_timeout of the policy, 3 s, or left out, got "
    "2": lambda: Clients(Policy(attempt_timeout=3), timeout=2),
    "on must be code that can be asked about TimeoutError('no answer in "
    "time'), but it raised AttributeError(\"'TimeoutError' object has no "
    "attribute 'response'\"), got needs_response; give an error that your "
    "client raises: simulate(errors=...)": lambda: simulate(Policy(on=NEEDS_RESPONSE)),
    "give_up_on must be code that can be asked about TimeoutError('no answer "
    "in time'), but it raised AttributeError(\"'TimeoutError' object has no "
    "attribute 'response'\"), got needs_response; give an error that your "
    "client raises: simulate(errors=...)": lambda: simulate(
        Policy(give_up_on=NEEDS_RESPONSE)
    ),
    "timeouts must be code that can be asked about TimeoutError('no answer in "
    "time'), but it raised AttributeError(\"'TimeoutError' object has no "
    "attribute 'response'\"), got needs_response; give an error that your "
    "client raises: simulate(errors=...)": lambda: simulate(
        Policy(budget=FleetBudget(timeouts=NEEDS_RESPONSE))
    ),
    "hint must be code that can be asked about TimeoutError('no answer in "
    "time'), but it raised AttributeError(\"'TimeoutError' object has no "
    "attribute 'response'\"), got needs_response; give an error that your "
    "client raises: simulate(errors=...)": lambda: simulate(
        Policy(hint=NEEDS_RESPONSE)
    ),
    "on must be a condition that matches TimeoutError('no answer in time'), "
    "with which the outage is simulated, got <class 'ValueError'>; give the "
    "error that your client raises: simulate(errors=...)": lambda: simulate(
        Policy(on=ValueError)
    ),
    "on must be a condition that matches ConnectionRefusedError('connection "
    "refused'), with which the outage is simulated, got <class "
    "'TimeoutError'>; give the error that your client raises: "
    "simulate(errors=...)": lambda: simulate(
        Policy(on=TimeoutError), outage=Outage("1s", "refuse")
    ),
    "on must be a condition that matches ServiceUnavailable('503 Service "
    "Unavailable'), with which the outage is simulated, got <class 'OSError'>; "
    "give the error that your client raises: "
    "simulate(errors=...)": lambda: simulate(
        Policy(on=OSError), outage=Outage("1s", "error")
    ),
    "admission[0] must be a CircuitBreaker, Concurrency, RateLimit or "
    "AdaptiveRateLimit in a simulation, got Adapted(<unlocked "
    "semaphore>, name='api'); simulate the policy without it: "
    "policy.replace(admission=...)": lambda: simulate(
        Policy(admission=[Adapted(Semaphore(), name="api")])
    ),
    "sdk must be a Policy, got 5": lambda: Clients(Policy(), sdk=5),
    "connections must be an integer >= 1, got 0": lambda: Clients(
        Policy(), connections=0
    ),
    "on_result must be None in a simulation, got needs_response; it is not "
    "simulated: policy.replace(on_result=None)": lambda: simulate(
        Policy(on_result=NEEDS_RESPONSE)
    ),
    "on_result must be None in the rules of a simulated policy, got "
    "needs_response; leave out the rule: every answer of the server is a "
    "success": lambda: simulate(
        Policy(rules=[Rule(on_result=NEEDS_RESPONSE, max_attempts=3)])
    ),
    "sleep must be None in a simulation, got needs_response; it is not "
    "simulated: policy.replace(sleep=None)": lambda: simulate(
        Policy(sleep=NEEDS_RESPONSE)
    ),
    "budget must be sync in a simulation, got AsyncBudget(); simulate the "
    "policy with a local budget: policy.replace(budget=...)": lambda: simulate(
        Policy(budget=AsyncBudget())
    ),
    "budget must be a budget of retrykit.budgets, or one that copy.deepcopy "
    "can copy, got ConnectedBudget(); simulate the policy with a local budget: "
    "policy.replace(budget=...)": lambda: simulate(Policy(budget=ConnectedBudget())),
    "progress must be a function of two numbers, or None, got 'bar'": lambda: simulate(
        Policy(), progress="bar"
    ),
    "error must be a BaseException, got 5": lambda: simulation_of(5),
    "outage must be an outage, to recover from, got None": lambda: smallest_change(
        Policy(), outage=None
    ),
    "server must be a Server, got [5]": lambda: smallest_change(Policy(), server=[5]),
    "progress must be a function of a text, or None, got 5": lambda: smallest_change(
        Policy(), progress=5
    ),
    "seed must be an integer >= 0 and <= 9007199254740991, got "
    "9007199254740992": lambda: simulate(Policy(), seed=2**53),
    "seed must be an integer >= 0 and <= 9007199254740989, got "
    "9007199254740990": lambda: smallest_change(Policy(), seed=2**53 - 2),
    "seed must be an integer >= 0, got -5": lambda: smallest_change(Policy(), seed=-5),
    "server must be a Server, got 5": lambda: basin(Policy(), server=5),
    "steps must be an integer >= 1, got 0": lambda: basin(Policy(), steps=0),
    "queue must be an integer >= 1, got 0": lambda: basin(Policy(), queue=0),
    "admission[0] must be without random numbers in the open_for of "
    "a simulated breaker, got "
    "CircuitBreaker(open_for=exponential(1.0, "
    "factor=2.0).full_jitter(), name='api'); write open_for=\"30s\"": lambda: simulate(
        Policy(
            admission=[
                CircuitBreaker(open_for=exponential(1).full_jitter(), name="api")
            ]
        )
    ),
    "timeout must be above 1.001 s, the least time of a request, got 1.0; no attempt "
    "could succeed; wait longer, or give the server more capacity or less "
    "slots": lambda: simulate(Policy(), server=Server(1)),
    "attempt_timeout must be above 0.101 s, the least time of a request, got 0.1; no "
    "attempt could succeed; wait longer, or give the server more capacity or less "
    "slots": lambda: simulate(Policy(attempt_timeout="100ms"), server=Server(10)),
    "timeout must be above 0.501 s, the least time of a request, got 0.5; no attempt "
    "could succeed; wait longer, or give the server more capacity or less "
    "slots": lambda: simulate(
        Policy(),
        load="5%",
        server=[Server(10, slots=5), Clients(Policy(), timeout=0.5), Server(2)],
    ),
    "slots must be above 1.01, as each request holds one for 0.102 "
    "s, got 1; while the server waits for the next one": lambda: simulate(
        Policy(), server=[Server(1000), Clients(Policy()), Server(10)], load="99%"
    ),
    "sdk must be a policy without limits and hedge, which only the "
    "policy may have, got Policy(hedge=Hedge(1.0, idempotent=True)); "
    "write sdk.replace(admission=(), hedge=None)": lambda: Clients(
        Policy(), sdk=Policy(hedge=Hedge("1s", idempotent=True))
    ),
    "timeout must be the attempt_timeout of the sdk, 2 s, or left out, got 1": lambda: (
        Clients(Policy(), sdk=Policy(attempt_timeout=2), timeout=1)
    ),
    "policy must be a Policy, got 88": lambda: contend(88),
    "policy must be without limits and a hedge where clients "
    "contend, got Policy(admission=(RateLimit(5),)); "
    "policy.replace(admission=(), hedge=None)": lambda: contend(
        Policy(admission=[RateLimit(5)])
    ),
    "clients must be an integer >= 1, got -88": lambda: contend(Policy(), clients=-88),
    "runs must be an integer >= 1, got -88": lambda: contend(Policy(), runs=-88),
    "seed must be an integer >= 0, got -88": lambda: contend(Policy(), seed=-88),
    "error must be an Exception, got 88": lambda: contend(Policy(), error=88),
    "network must be a duration > 0, got 0": lambda: contend(Policy(), network=0),
    'network must be a duration such as "12.5s", "500ms" or "1h30m", '
    "got '88'; write the unit (us, ms, s, m, h, d, w)": lambda: contend(
        Policy(), network="88"
    ),
    "deviation must be a finite number >= 0, got -88": lambda: contend(
        Policy(), deviation=-88
    ),
    "policy must be clients whose attempts are one request each, got "
    "Clients(policy=Policy(), share=1.0, processes=100, timeout=1.0, sdk=Policy(), "
    "connections=None); leave out the limits, the hedge, the SDK and "
    "connections": lambda: basin(Clients(Policy(), sdk=Policy())),
}
